/* SPDX-License-Identifier: Apache-2.0 */
/* Named places at which a test may kill the program: HIKYAKU_CRASH_AT=name:N kills it (SIGKILL) when the place is passed
 * for the N-th time; HIKYAKU_STOP_AT=name:N stops it there (SIGSTOP), until somebody lets it go on. Only in builds made for tests; otherwise nothing at all. */
#ifndef HK_OBSERVE_CRASH_H
#define HK_OBSERVE_CRASH_H

#ifdef HK_CRASH_POINTS
void hk_crash_point(const char *name);
#else
#define hk_crash_point(name) ((void)0)
#endif

#endif
