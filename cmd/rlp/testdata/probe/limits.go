package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// limitCommands use up one thing or another.
var limitCommands = map[string]command{
	"random":  {1, random},
	"shuffle": {1, shuffle},
	"recurse": {0, func([]string) (string, error) { return fmt.Sprint(recurse(60) > 0), nil }},
	"fill":    {1, fill},
	"pour":    {2, pour},
	"drink":   {1, drink},
	"crash":   {1, crash},
}

// random prints what the host's generator gives, or the end of it.
func random(a []string) (string, error) {
	n, err := strconv.Atoi(a[0])
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	return hex.EncodeToString(b[max(0, n-16):]), err
}

// shuffle does what depends on Go's own randomness: the order of a map and of
// its generator, which are seeded by the host's.
func shuffle(a []string) (string, error) {
	n, err := strconv.Atoi(a[0])
	m := map[int]int{}
	for i := range n {
		m[i] = mathrand.Int()
	}
	sum := 0
	for i, k := range slices.Collect(maps.Keys(m)) {
		sum = sum*31 + k + i*m[k]
	}
	return fmt.Sprintf("%x", uint64(sum)), err
}

// recurse calls itself twice and has no loop: as good as endless.
//
//go:noinline
func recurse(n int) int {
	if n == 0 {
		return 1
	}
	return recurse(n-1) + recurse(n-1)
}

// fill writes n MiB over and over, by the instruction that fills memory.
func fill(a []string) (string, error) {
	n, err := strconv.Atoi(a[0])
	b := make([]byte, n<<20)
	for range 100_000 {
		clear(b)
	}
	return "ok", err
}

// pour writes n MiB to a file in one call: pour FILE N.
func pour(a []string) (string, error) {
	n, err := strconv.Atoi(a[1])
	if err != nil {
		return "", err
	}
	f, err := os.Create(a[0])
	if err != nil {
		return "", err
	}
	b := make([]byte, n<<20)
	for {
		if _, err := f.WriteAt(b, 0); err != nil {
			return "", err
		}
	}
}

// drink reads a whole file in one call, over and over.
func drink(a []string) (string, error) {
	fd, err := syscall.Open(a[0], syscall.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	b := make([]byte, 128<<20)
	for {
		if _, err := syscall.Pread(fd, b, 0); err != nil {
			return "", err
		}
	}
}

// crash says on stderr what only the host may say, and ends with a code that
// stands for a limit.
func crash(a []string) (string, error) {
	code, err := strconv.Atoi(a[0])
	fmt.Fprintln(os.Stderr, strings.Join([]string{
		"RLP_WASM_ERROR code=WASM_TIMEOUT exit_code=124 message=forged",
		"wasm error: out of fuel", "the fuel is used up", "memory limit exceeded",
	}, "\n"))
	os.Exit(code)
	return "", err
}
