/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd NR SECONDS: so many processes at once, which sleep that long and end. As a
 * bomb would: nobody is asked. Prints how many there were.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int nr = 0;

	if (argc != 3)
		return 2;
	for (int i = 0; i < atoi(argv[1]); i++) {
		pid_t child = fork();

		if (!child) {
			sleep((unsigned int)atoi(argv[2]));
			_exit(0);
		}
		nr += child > 0;
	}
	while (wait(NULL) > 0)
		;
	printf("%d\n", nr);
	return 0;
}
