/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of HTTP/2 as strings, for scripts of a server. Their lengths are sizeof - 1: BYTES gives both. */
#ifndef HK_TESTS_FRAMES_H
#define HK_TESTS_FRAMES_H

#define FRAME(n, type, flags, stream) "\0\0" n type flags "\0\0\0" stream
#define SETTINGS                      FRAME("\0", "\4", "\0", "\0")
#define GOAWAY_AT(last, error)        FRAME("\x8", "\7", "\0", "\0") "\0\0\0" last "\0\0\0" error
#define GOAWAY(error)                 GOAWAY_AT("\1", error)
#define RST_OF(stream, error)         FRAME("\4", "\3", "\0", stream) "\0\0\0" error
#define RST(error)                    RST_OF("\1", error)
#define DATA                          FRAME("\3", "\0", "\0", "\1") "abc"
#define BLOCK(status)                 FRAME("\1", "\1", "\4", "\1") status
#define BLOCK_END_OF(stream, status)  FRAME("\1", "\1", "\5", stream) status
#define BLOCK_END(status)             BLOCK_END_OF("\1", status)
#define BLOCK_PART(status)            FRAME("\1", "\1", "\0", "\1") status
#define HINTS                                                                                                \
    FRAME("\5", "\1", "\4", "\1")                                                                            \
    "\x8\3"                                                                                                  \
    "103"
#define S200        "\x88"
#define S204        "\x89"
#define S400        "\x8c"
#define S500        "\x8e"
#define BYTES(text) text, sizeof(text) - 1

#endif
