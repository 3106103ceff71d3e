/* SPDX-License-Identifier: Apache-2.0 */
/* Names to numbers: a table of what the log calls things. */
#include <stdlib.h>
#include <string.h>

#include "checker_impl.h"

static size_t place_of(const struct names *names, struct hk_str name)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < name.len; i++)
        h = (h ^ (unsigned char)name.ptr[i]) * 0x100000001b3u;
    size_t i = (size_t)(h ^ h >> 32) & (names->table_room - 1);
    while (names->table[i]) {
        size_t n = names->table[i] - 1;
        if (names->lens[n] == name.len && memcmp(names->texts[n], name.ptr, name.len) == 0)
            break;
        i = (i + 1) & (names->table_room - 1);
    }
    return i;
}

static void grow_table(struct names *names)
{
    names->table_room = names->table_room ? names->table_room * 2 : 64;
    free(names->table);
    names->table = calloc(names->table_room, sizeof *names->table);
    if (!names->table)
        abort();
    for (size_t n = 0; n < names->n; n++)
        names->table[place_of(names, (struct hk_str){names->texts[n], names->lens[n]})] = n + 1;
}

size_t hk_names_find(const struct names *names, struct hk_str name)
{
    return names->n ? names->table[place_of(names, name)] - 1 : NOBODY; /* 0 - 1 is NOBODY, too */
}

size_t hk_names_get(struct names *names, struct hk_str name)
{
    size_t found = hk_names_find(names, name);
    if (found != NOBODY)
        return found;
    if (names->n * 2 >= names->table_room)
        grow_table(names);
    size_t room = names->room;
    names->texts = hk_checker_grow(names->texts, names->n, &room, sizeof *names->texts);
    room = names->room;
    names->lens = hk_checker_grow(names->lens, names->n, &room, sizeof *names->lens);
    names->room = room;
    char *copy = malloc(name.len + 1);
    if (!copy)
        abort();
    if (name.len)
        memcpy(copy, name.ptr, name.len);
    copy[name.len] = '\0';
    names->texts[names->n] = copy;
    names->lens[names->n] = name.len;
    names->table[place_of(names, name)] = names->n + 1;
    return names->n++;
}

void hk_names_fini(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->texts[i]);
    free(names->texts);
    free(names->lens);
    free(names->table);
}
