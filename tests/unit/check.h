/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test includes: cmocka with the headers it wants before it, and a few helpers. */
#ifndef HK_TESTS_CHECK_H
#define HK_TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Says which row of a table failed before the assertion does. */
#define NOTE_IF(cond, ...)                                                                                   \
    do {                                                                                                     \
        if (cond)                                                                                            \
            print_error(__VA_ARGS__);                                                                        \
    } while (0)

#endif
