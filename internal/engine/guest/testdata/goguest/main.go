// A guest as people write them: Go, its standard library, one verb a behaviour.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"
)

func main() {
	verbs := map[string]func(args []string) error{
		"hello": hello, "files": files, "clock": clock, "sleep": sleep, "spin": spin,
		"panic": func([]string) error { panic("on purpose") },
		"hog":   hog, "exit": exit, "descriptors": descriptors, "network": network,
		"work": work,
	}
	if err := verbs[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

func hello(args []string) error {
	in, err := io.ReadAll(os.Stdin)
	env := os.Environ()
	sort.Strings(env)
	fmt.Printf("%s %q %q %q\n", os.Args[0], args, env, in)
	fmt.Fprintln(os.Stderr, "to stderr")
	return err
}

// files does to /work what programs do to a folder, and says what it saw.
func files([]string) error {
	step := []func() error{
		func() error { return os.MkdirAll("/work/a/b", 0o755) },
		func() error { return os.WriteFile("/work/a/b/one", []byte("one"), 0o644) },
		func() error { return os.WriteFile("/work/a/two", []byte("twotwo"), 0o644) },
		func() error { return os.Rename("/work/a/two", "/work/two") },
		func() error { return os.Truncate("/work/two", 3) },
		func() error { return os.Symlink("a/b/one", "/work/link") },
		func() error { return os.Chtimes("/work/two", time.Unix(1, 0), time.Unix(2, 0)) },
		func() error { return os.Link("/work/two", "/work/three") },
		appendTo,
		func() error { return os.Remove("/work/three") },
	}
	for i, f := range step {
		if err := f(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	err := filepath.WalkDir("/work", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Println(p, info.Mode().Type(), info.Size())
		return nil
	})
	if err != nil {
		return err
	}
	two, err := os.ReadFile("/work/two")
	target, err2 := os.Readlink("/work/link")
	info, err3 := os.Stat("/work/link")
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	_, denied := os.ReadFile("/secret/key")
	_, missing := os.Stat("/work/none")
	fmt.Printf("%s %s %d %t %t\n", two, target, info.Size(), errors.Is(denied, fs.ErrPermission),
		errors.Is(missing, fs.ErrNotExist))
	return os.RemoveAll("/work/a")
}

func appendTo() error {
	f, err := os.OpenFile("/work/three", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("+")
	return errors.Join(err, f.Close())
}

func clock([]string) error {
	began := time.Now()
	fmt.Println(began.UTC().Format(time.DateOnly))
	done := make(chan time.Duration)
	for _, d := range []time.Duration{3 * time.Hour, time.Hour, 2 * time.Hour} {
		go func() { time.Sleep(d); done <- d }()
	}
	fmt.Println(<-done, <-done, <-done, time.Since(began).Truncate(time.Hour))
	return nil
}

func sleep([]string) error { time.Sleep(time.Hour); return nil }

func spin([]string) error {
	for n := 0; ; n++ {
		if n < 0 {
			return nil
		}
	}
}

func hog([]string) error {
	var keep [][]byte
	for {
		keep = append(keep, make([]byte, 1<<20))
		fmt.Println(len(keep))
	}
}

func exit(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err == nil {
		os.Exit(n)
	}
	return err
}

func descriptors([]string) error {
	var open []*os.File
	for {
		f, err := os.Open("/work")
		if err != nil {
			fmt.Println(len(open) > 100 && len(open) < 300, strings.Contains(err.Error(), "Too many open files"))
			return nil
		}
		open = append(open, f)
	}
}

func network([]string) error {
	_, err := net.Dial("tcp", "127.0.0.1:1")
	fmt.Println(err != nil)
	return nil
}

// work does what depends on the machine wherever it can: goroutines, maps, the
// collector, the clock, and random numbers.
func work(args []string) error {
	rounds, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for round := range rounds {
		parts, seen := make(chan uint64), map[uint64]int{}
		for range 8 {
			go func() {
				time.Sleep(time.Duration(rand.IntN(1000)))
				parts <- rand.Uint64()
			}()
		}
		for range 8 {
			seen[<-parts] = round
		}
		sum, garbage := uint64(0), 0
		for n := range seen {
			sum = sum*31 + n
			garbage += len(make([]byte, n%50_000))
		}
		fmt.Printf("%d %x %d %d\n", round, sum, garbage, time.Now().UnixNano())
	}
	return nil
}
