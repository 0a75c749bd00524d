// Command kernels computes what its argument names and prints a sum of it.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
)

func main() {
	kernels := map[string]func() uint64{
		"sieve": sieve, "fib": func() uint64 { return fib(32) }, "matmul": matmul, "sha256": hash,
		"json": encode, "sort": order, "strings": text, "fill": fill,
	}
	f, ok := kernels[os.Args[1]]
	if !ok {
		panic("no such kernel")
	}
	fmt.Println(os.Args[1], f())
}

func sieve() uint64 {
	const n = 5_000_000
	composite := make([]bool, n)
	count := uint64(0)
	for i := 2; i < n; i++ {
		if composite[i] {
			continue
		}
		count++
		for j := 2 * i; j < n; j += i {
			composite[j] = true
		}
	}
	return count
}

func fib(n uint64) uint64 {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

func matmul() uint64 {
	const n = 200
	var a, b, c [n][n]float64
	for i := range n {
		for j := range n {
			a[i][j], b[i][j] = float64(i+j), float64(i-j)
		}
	}
	for i := range n {
		for j := range n {
			sum := 0.0
			for k := range n {
				sum += a[i][k] * b[k][j]
			}
			c[i][j] = sum
		}
	}
	return uint64(c[17][23])
}

func hash() uint64 {
	block := make([]byte, 1<<16)
	sum := [32]byte{}
	for range 60 {
		copy(block, sum[:])
		sum = sha256.Sum256(block)
	}
	return uint64(sum[0]) | uint64(sum[1])<<8
}

type item struct {
	Name  string            `json:"name"`
	Value float64           `json:"value"`
	Tags  []string          `json:"tags"`
	More  map[string]uint64 `json:"more"`
}

func encode() uint64 {
	total := uint64(0)
	for i := range 1500 {
		raw, err := json.Marshal(item{
			Name: fmt.Sprint("item ", i), Value: float64(i) / 3, Tags: []string{"a", "b", "c"},
			More: map[string]uint64{"i": uint64(i)},
		})
		if err != nil {
			panic(err)
		}
		var back item
		if err := json.Unmarshal(raw, &back); err != nil {
			panic(err)
		}
		total += uint64(len(raw)) + back.More["i"]
	}
	return total
}

func order() uint64 {
	list := make([]int, 300_000)
	x := uint64(88172645463325252)
	for i := range list {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		list[i] = int(x >> 20)
	}
	sort.Ints(list)
	return uint64(list[len(list)/2])
}

func text() uint64 {
	var b strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&b, "word%d ", i%977)
	}
	total := 0
	for _, w := range strings.Fields(strings.ToUpper(b.String())) {
		total += len(strings.Split(w, "D")) + strings.Count(w, "7")
	}
	return uint64(total)
}

func fill() uint64 {
	buf := make([]byte, 1<<20)
	for i := range 400 {
		for j := range buf[:1<<14] {
			buf[j] = byte(i)
		}
		copy(buf[1<<19:], buf[:1<<19])
		clear(buf[1<<18 : 1<<19])
	}
	return uint64(buf[1<<19+5])
}
