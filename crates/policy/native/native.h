/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native.h - policy as functions that another language can call: policy/ has
 * only inline ones, since the shim and BPF programs compile it in.
 */
#ifndef COS_NATIVE_H
#define COS_NATIVE_H

#include "policy.h"

cos_learn native_observe;
cos_decide native_wait, native_arrival, native_fairness, native_periodic, native_order,
	native_quantum, native_admit;
cos_plan_fn native_plan;

#endif
