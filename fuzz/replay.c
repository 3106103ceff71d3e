/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over saved inputs, for builds without libFuzzer: what once crashed stays a test.
 * Arguments are files and folders (not searched deeper); one that is not there counts as empty. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

static size_t n_inputs;

static void die(const char *what)
{
    printf("Bail out! %s: %s\n", what, strerror(errno));
    exit(1);
}

static void replay_file(const char *path)
{
    struct stat st;
    FILE *file = fopen(path, "rb");
    if (file == NULL || fstat(fileno(file), &st) != 0)
        die(path);

    /* exactly as large as the input, so that AddressSanitizer sees a read past its end */
    size_t size = (size_t)st.st_size;
    uint8_t *data = malloc(size > 0 ? size : 1);
    if (data == NULL || fread(data, 1, size, file) != size)
        die(path);
    fclose(file);

    printf("# %s\n", path); /* the last one named is the one that crashed */
    fflush(stdout);
    LLVMFuzzerTestOneInput(data, size);
    n_inputs++;
    free(data);
}

static void replay_folder(const char *path)
{
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);
    if (n < 0)
        die(path);
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.') {
            char file[4096];
            snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
            replay_file(file);
        }
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    struct stat st;

    puts("1..1");
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        if (stat(argv[i], &st) != 0) {
            if (errno != ENOENT)
                die(argv[i]);
        } else if (S_ISDIR(st.st_mode)) {
            replay_folder(argv[i]);
        } else {
            replay_file(argv[i]);
        }
    }
    printf("ok 1 - %s survives %zu saved inputs\n", slash != NULL ? slash + 1 : argv[0], n_inputs);
    return 0;
}
