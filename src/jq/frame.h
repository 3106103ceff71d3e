/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol between hikyaku and its jq helper: frames of four bytes of length, most significant first, and that many
 * bytes. The first frame is the program; each further one a document. Every frame is answered by one whose first byte is one
 * of the following. */
#ifndef HK_JQ_FRAME_H
#define HK_JQ_FRAME_H

#define HK_JQ_OK    'O' /* behind it the result, or nothing for the program */
#define HK_JQ_ERROR 'E' /* behind it a message */

#define HK_JQ_HEAD      4
#define HK_JQ_FRAME_MAX (64u << 20)

#endif
