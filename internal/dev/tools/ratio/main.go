// Ratio reads the output of `go test -bench` and prints the figures that the
// project promises, each beside what was measured. Most are ratios of two
// benchmarks of one run, which hold on any machine; a bare time holds on the
// kind of machine that it was set for.
//
//	go test -bench . -benchmem ./... | ratio [-strict]
package main

import (
	"bufio"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// promises are lines of: what is promised, TAB, the benchmark, TAB, the one
// that it is measured against or a unit, TAB, the most that it may be. A
// benchmark that reports another time than ns/op has it behind an @.
//
//go:embed promises.tsv
var promises string

func main() {
	strict := flag.Bool("strict", false, "exit 1 when a promise is broken")
	flag.Parse()
	ps, err := parsePromises(promises)
	if err == nil {
		var kept bool
		kept, err = report(os.Stdout, ps, os.Stdin)
		if err == nil && *strict && !kept {
			os.Exit(1)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ratio:", err)
		os.Exit(1)
	}
}

// A promise bounds one figure: a benchmark's own, or its ratio to another's.
type promise struct {
	what, bench, against string
	most                 float64
}

// isUnit reports whether a promise is about a figure of the benchmark itself.
func (p promise) isUnit() bool { return strings.HasSuffix(p.against, "/op") }

func parsePromises(text string) ([]promise, error) {
	var ps []promise
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 4 {
			return nil, fmt.Errorf("promises: %q has %d fields, not 4", line, len(f))
		}
		most, err := strconv.ParseFloat(f[3], 64)
		if err != nil {
			return nil, fmt.Errorf("promises: %q: %w", line, err)
		}
		ps = append(ps, promise{f[0], f[1], f[2], most})
	}
	return ps, nil
}

// report writes a line for each promise, and whether all that were measured
// are kept.
func report(w io.Writer, ps []promise, bench io.Reader) (bool, error) {
	figures, err := readFigures(bench)
	if err != nil {
		return false, err
	}
	kept := true
	for _, p := range ps {
		have, ok := measured(p, figures)
		verdict := "kept"
		switch {
		case !ok:
			fmt.Fprintf(w, "%-60s %12s  at most %g  (%s)\n", p.what, "not measured", p.most, p.bench)
			continue
		case have > p.most:
			verdict, kept = "BROKEN", false
		}
		unit := "times " + p.against
		if p.isUnit() {
			unit = p.against
		}
		fmt.Fprintf(w, "%-60s %12.2f  at most %g %s: %s\n", p.what, have, p.most, unit, verdict)
	}
	return kept, nil
}

// measured returns the figure that a promise is about.
func measured(p promise, figures map[string][]float64) (float64, bool) {
	if p.isUnit() {
		have, ok := figures[p.bench+" "+p.against]
		return median(have), ok
	}
	have, base := figures[key(p.bench)], figures[key(p.against)]
	if len(have) == 0 || median(base) == 0 {
		return 0, false
	}
	return median(have) / median(base), true
}

// key returns "name unit" of "name@unit", where the unit may be left out.
func key(bench string) string {
	name, unit, ok := strings.Cut(bench, "@")
	if !ok {
		unit = "ns/op"
	}
	return name + " " + unit
}

// readFigures returns the figures by "name unit"; a name has its package and
// neither "Benchmark" nor the number of processors: hostcalls.Call/checked.
func readFigures(r io.Reader) (map[string][]float64, error) {
	figures := make(map[string][]float64)
	room := ""
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if pkg, ok := strings.CutPrefix(lines.Text(), "pkg: "); ok {
			_, room, _ = strings.Cut(pkg, "/")
			_, room, _ = strings.Cut(room, "/")
			continue
		}
		f := strings.Fields(lines.Text())
		name, ok := strings.CutPrefix(lines.Text(), "Benchmark")
		if !ok || len(f) < 4 {
			continue
		}
		name = room + "." + withoutProcs(strings.Fields(name)[0])
		for i := 2; i+1 < len(f); i += 2 {
			if v, err := strconv.ParseFloat(f[i], 64); err == nil {
				figures[name+" "+f[i+1]] = append(figures[name+" "+f[i+1]], v)
			}
		}
	}
	return figures, lines.Err()
}

// withoutProcs cuts the "-8" that go test puts behind a name.
func withoutProcs(name string) string {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return name
	}
	if _, err := strconv.Atoi(name[i+1:]); err != nil {
		return name
	}
	return name[:i]
}

// median returns the middle value, or 0 of none.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
