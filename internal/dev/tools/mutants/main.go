// Mutants changes the source of packages in many small ways, one at a time, and
// runs the tests that reach each change: a change that no test notices is a
// survivor. All changes of all packages are built at once, each behind a
// number that the environment turns on, so that only tests are run per change.
//
//	mutants [-explained FILE] [-target PERCENT] [-also PACKAGE,...] PACKAGE...
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

type options struct {
	root, explained, also, only string
	target                      float64
	jobs                        int
	most, idle                  time.Duration
	progress                    bool
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "the module's folder")
	flag.StringVar(&o.explained, "explained", "", "file of survivors and their reasons")
	flag.StringVar(&o.also, "also", "", "packages, by commas, whose tests are run for what the own ones leave")
	flag.StringVar(&o.only, "only", "", "regular expression: mutants that are tried, by file:line: function: change")
	flag.Float64Var(&o.target, "target", 0, "exit 1 when a package's killed share is below this")
	flag.IntVar(&o.jobs, "jobs", 2, "tests at a time")
	flag.DurationVar(&o.most, "longest", 20*time.Second, "tests that take longer are left out")
	flag.DurationVar(&o.idle, "idle", 2*time.Minute,
		"tests that wait for longer, beside their time on the processor, are taken to hang")
	flag.BoolVar(&o.progress, "progress", false, "print survivors as they are found, on stderr")
	flag.Parse()
	good, err := hunt(os.Stdout, o, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if !good {
		os.Exit(1)
	}
}

// hunt reports whether every package meets the target and every survivor is
// explained.
func hunt(w io.Writer, o options, patterns []string) (bool, error) {
	root, err := filepath.Abs(o.root)
	if err != nil {
		return false, err
	}
	known := explanations{}
	if o.explained != "" {
		if known, err = readExplanations(o.explained); err != nil {
			return false, err
		}
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return false, err
	}
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(work)
	packages, err := list(root, patterns)
	if err != nil {
		return false, err
	}
	b, err := newBuild(root, work, packages)
	if err != nil {
		return false, err
	}
	suites, err := b.suites(w, o)
	if err != nil {
		return false, err
	}
	good := true
	used := map[string]bool{}
	for i, p := range packages {
		own := suites[:len(packages)]
		order := slices.Concat(own[i:i+1], own[:i], own[i+1:], suites[len(packages):])
		ok := b.judge(w, p, order, known, used, only, o)
		good = good && ok
	}
	for key := range known {
		if !used[key] && o.only == "" && covers(packages, root, key) {
			fmt.Fprintf(w, "explained, but killed or gone: %s\n", strings.ReplaceAll(key, "\t", " "))
			good = false
		}
	}
	return good, nil
}

// covers reports whether an explanation is of one of the packages.
func covers(packages []pkg, root, key string) bool {
	file, _, _ := strings.Cut(key, "\t")
	return slices.ContainsFunc(packages, func(p pkg) bool {
		return p.Dir == filepath.Join(root, filepath.Dir(file))
	})
}

// suites are those of the packages, then those that are run also.
func (b *build) suites(w io.Writer, o options) ([]*suite, error) {
	packages := b.packages
	if o.also != "" {
		more, err := list(b.root, strings.Split(o.also, ","))
		if err != nil {
			return nil, err
		}
		packages = slices.Concat(packages, more)
	}
	var all []*suite
	for _, p := range packages {
		s := &suite{pkg: p, idle: o.idle}
		all = append(all, s)
		var err error
		if s.binary, err = b.tests(p); err != nil {
			return nil, err
		}
		if s.binary == "" {
			continue
		}
		if err := s.learn(b, o.most, o.jobs); err != nil {
			return nil, err
		}
		if len(s.broken) > 0 {
			fmt.Fprintf(w, "%s: left out, for they fail or take over %s here: %s\n", p.ImportPath, o.most,
				strings.Join(s.broken, " "))
		}
	}
	return all, nil
}

// judge tries the mutants of one package.
func (b *build) judge(w io.Writer, p pkg, suites []*suite, known explanations, used map[string]bool,
	only *regexp.Regexp, o options,
) bool {
	var mine []mutant
	for _, mut := range b.mutants() {
		if filepath.Dir(filepath.Join(b.root, mut.file)) == p.Dir && only.MatchString(mut.String()) {
			mine = append(mine, mut)
		}
	}
	var mu sync.Mutex
	var lines []string
	killed, explained := 0, 0
	each(o.jobs, mine, func(mut mutant) {
		dead, reached := kills(mut, suites)
		mu.Lock()
		defer mu.Unlock()
		if dead {
			killed++
			return
		}
		if known[mut.key()] != "" {
			used[mut.key()] = true
			explained++
			return
		}
		line := "survives: "
		if !reached {
			line = "not reached: "
		}
		lines = append(lines, line+mut.String()+fmt.Sprintf(" [%d]", mut.nth))
		if o.progress {
			fmt.Fprintln(os.Stderr, lines[len(lines)-1])
		}
	})
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
	share := 100.0
	if len(mine) > explained {
		share = 100 * float64(killed) / float64(len(mine)-explained)
	}
	fmt.Fprintf(w, "%s: %d mutants, %d killed, %d explained, %d left: %.1f %% killed\n", p.ImportPath, len(mine), killed,
		explained, len(lines), share)
	return share >= o.target
}
