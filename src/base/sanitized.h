/* SPDX-License-Identifier: Apache-2.0 */
/* Is this build watched by a sanitizer? Those make system calls, and take memory, that the program itself never would. */
#ifndef HK_BASE_SANITIZED_H
#define HK_BASE_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HK_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HK_SANITIZED 1
#endif
#endif
#ifndef HK_SANITIZED
#define HK_SANITIZED 0
#endif

#endif
