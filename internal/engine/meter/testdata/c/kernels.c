// Computes what its argument names and prints a sum of it: the kernels of the
// Go guest beside it, as one writes them in C.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A kernel stays a function of its own, as in a program of that one thing.
#define KERNEL __attribute__((noinline)) static uint64_t

KERNEL sieve(void) {
	enum { n = 5000000 };
	uint8_t *composite = calloc(n, 1);
	uint64_t count = 0;
	for (int i = 2; i < n; i++) {
		if (composite[i])
			continue;
		count++;
		for (int j = 2 * i; j < n; j += i)
			composite[j] = 1;
	}
	free(composite);
	return count;
}

__attribute__((noinline)) static uint64_t fibonacci(uint64_t n) {
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

KERNEL fib(void) { return fibonacci(34); }

KERNEL matmul(void) {
	enum { n = 240 };
	static double a[n][n], b[n][n], c[n][n];
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			a[i][j] = i + j, b[i][j] = i - j;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) {
			double sum = 0;
			for (int k = 0; k < n; k++)
				sum += a[i][k] * b[k][j];
			c[i][j] = sum;
		}
	return (uint64_t)c[17][3];
}

static const uint32_t primes[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
	0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
	0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
	0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
	0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
	0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void sha256_block(uint32_t h[8], const uint8_t *p) {
	uint32_t w[64], v[8];
	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | p[4 * i + 1] << 16 | p[4 * i + 2] << 8 | p[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, h, sizeof v);
	for (int i = 0; i < 64; i++) {
		uint32_t s = v[7] + (turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) + primes[i] + w[i];
		uint32_t t = (turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
		memmove(v + 1, v, 28);
		v[4] += s;
		v[0] = s + t;
	}
	for (int i = 0; i < 8; i++)
		h[i] += v[i];
}

KERNEL sha256(void) {
	static uint8_t block[1 << 16];
	uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	for (int round = 0; round < 60; round++) {
		memcpy(block, h, sizeof h);
		for (size_t i = 0; i < sizeof block; i += 64)
			sha256_block(h, block + i);
	}
	return h[0];
}

// A value of JSON, parsed: the sum of its numbers and of its strings' lengths.
static const char *parse(const char *p, double *sum) {
	switch (*p) {
	case '{':
	case '[':
		while (*p != '}' && *p != ']') {
			p = parse(p + 1, sum);
			while (*p == ' ' || *p == ':')
				p++;
		}
		return p + 1;
	case '"':
		while (*++p != '"') {
			if (*p == '\\')
				p++;
			*sum += 1;
		}
		p++;
		return *p == ':' ? parse(p + 1, sum) : p;
	default: {
		char *end;
		*sum += strtod(p, &end);
		return end;
	}
	}
}

KERNEL json(void) {
	char text[256];
	double sum = 0;
	for (int i = 0; i < 20000; i++) {
		snprintf(text, sizeof text, "{\"name\":\"item %d\",\"value\":%.4f,\"tags\":[\"a\",\"b\",\"c\"],\"more\":{\"i\":%d}}", i, i / 3.0, i);
		parse(text, &sum);
	}
	return (uint64_t)sum;
}

static int ascending(const void *a, const void *b) {
	int x = *(const int *)a, y = *(const int *)b;
	return (x > y) - (x < y);
}

KERNEL sort(void) {
	enum { n = 200000 };
	int *list = malloc(n * sizeof *list);
	uint64_t x = 88172645463325252;
	for (int i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		list[i] = (int)(x >> 20);
	}
	qsort(list, n, sizeof *list, ascending);
	uint64_t middle = (uint64_t)list[n / 2];
	free(list);
	return middle;
}

KERNEL strings(void) {
	enum { n = 100000 };
	char *text = malloc(n * 9 + 1), *end = text;
	uint64_t total = 0;
	for (int i = 0; i < n; i++)
		end += snprintf(end, 10, "word%d ", i % 977);
	for (char *p = text; *p; p++)
		*p = *p >= 'a' && *p <= 'z' ? *p - 32 : *p;
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
		total += strlen(word) + (strstr(word, "D9") != NULL);
		for (char *p = word; (p = strchr(p, '7')); p++)
			total++;
	}
	free(text);
	return total;
}

KERNEL fill(void) {
	enum { n = 1 << 20 };
	uint8_t *buf = calloc(n, 1);
	for (int i = 0; i < 400; i++) {
		for (int j = 0; j < 1 << 14; j++)
			buf[j] = (uint8_t)(i + j);
		memcpy(buf + n / 2, buf, n / 2);
		memset(buf + n / 4, i, n / 4);
	}
	uint64_t last = buf[n / 2 + 5];
	free(buf);
	return last;
}

int main(int argc, char **argv) {
	static const struct {
		const char *name;
		uint64_t (*run)(void);
	} kernels[] = {
		{"sieve", sieve}, {"fib", fib}, {"matmul", matmul}, {"sha256", sha256},
		{"json", json}, {"sort", sort}, {"strings", strings}, {"fill", fill},
	};
	for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
		if (argc > 1 && strcmp(argv[1], kernels[i].name) == 0) {
			printf("%s %llu\n", kernels[i].name, (unsigned long long)kernels[i].run());
			return 0;
		}
	return 2;
}
