/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pvm - PVM blocks in the kernel while it waits, so cosched has nothing to do there: a
 * master sends numbers to a slave that it spawned and gets their squares back.
 */
#include <pvm3.h>
#include <stdio.h>
#include <unistd.h>

#define ROUNDS 100

static int square(void)
{
	int value, parent = pvm_parent();

	for (int i = 0; i < ROUNDS; i++) {
		pvm_recv(parent, 1);
		pvm_upkint(&value, 1, 1);
		if (i == ROUNDS / 2)
			usleep(300000);
		value *= value;
		pvm_initsend(PvmDataDefault);
		pvm_pkint(&value, 1, 1);
		pvm_send(parent, 2);
	}
	pvm_exit();
	return 0;
}

int main(int argc, char **argv)
{
	int slave, value;
	long sum = 0;

	(void)argc;
	if (pvm_mytid() < 0)
		return 3;
	if (pvm_parent() >= 0)
		return square();
	if (pvm_spawn(argv[0], NULL, PvmTaskDefault, NULL, 1, &slave) != 1)
		return 4;
	for (int i = 0; i < ROUNDS; i++) {
		pvm_initsend(PvmDataDefault);
		pvm_pkint(&i, 1, 1);
		pvm_send(slave, 1);
		pvm_recv(slave, 2);
		pvm_upkint(&value, 1, 1);
		sum += value;
	}
	printf("sum of squares %ld\n", sum);
	pvm_exit();
	return 0;
}
