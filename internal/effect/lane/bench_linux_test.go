package lane

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

// BenchmarkLanes compares a program in each lane with the same one started by
// os/exec, and by bubblewrap as one would by hand. All take turns, so that the
// machine is the same for each, and the figures are medians. RLP_SELF is the
// program that confines, bin/rlp; the tests' own starts more slowly.
func BenchmarkLanes(b *testing.B) {
	own := os.Getenv("RLP_SELF")
	if own == "" {
		own = self(b)
	}
	path := file(b, "/bin/true")
	took, spent := map[string][]time.Duration{}, map[string]time.Duration{}
	used := func() time.Duration { // by what was started: a busy machine counts little
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	timed := func(name string, f func() error) {
		before, began := used(), time.Now()
		defer func() { spent[name] += used() - before }()
		if err := f(); err != nil {
			b.Fatal(name, err)
		}
		took[name] = append(took[name], time.Since(began))
	}
	lanes := map[string]Lane{}
	for _, name := range []string{"native", "ns", "bwrap"} {
		lanes[name] = newLane(b, name, func(c *Config) { c.Self = []string{own, "rlp", sandbox.ConfineName} })
	}
	for b.Loop() {
		timed("plain", exec.Command(path).Run)
		hand := exec.Command("/usr/bin/bwrap", byHand(path)...)
		hand.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		timed("by_hand", hand.Run)
		if err := endLed(hand.Process.Pid); err != nil { // bubblewrap ends before its first process has
			b.Fatal(err)
		}
		same := exec.Command("/usr/bin/bwrap", append(sameView(b, lanes["bwrap"].(*bwrap)), path)...)
		same.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		timed("same_view", same.Run)
		if err := endLed(same.Process.Pid); err != nil {
			b.Fatal(err)
		}
		for name, l := range lanes {
			timed(name, func() error {
				r, err := l.Run(b.Context(), &Command{
					Program: path, Argv: []string{"true"}, Timeout: time.Minute,
					MaxOutput: 1 << 10,
				})
				if err == nil && r.ExitCode != 0 {
					err = fmt.Errorf("%+v", r)
				}
				return err
			})
			switch l := l.(type) { // a run that starts its next program at once waits for this before
			case *ns:
				timed(name+"_gone", l.settle)
			case *bwrap:
				timed(name+"_gone", l.settle)
			}
		}
	}
	at := func(name string, tenths int) float64 {
		slices.Sort(took[name])
		return float64(took[name][len(took[name])*tenths/10].Microseconds()) / 1000
	}
	median := func(name string) float64 { return at(name, 5) }
	for _, name := range []string{"plain", "by_hand", "same_view", "native", "ns", "ns_gone", "bwrap", "bwrap_gone"} {
		b.ReportMetric(median(name), "ms/"+name)
		b.ReportMetric(at(name, 1), "quiet_ms/"+name) // the fastest tenth: as where nothing else runs
		b.ReportMetric(float64(spent[name].Microseconds())/float64(len(took[name]))/1000, "cpu_ms/"+name)
	}
	b.ReportMetric(median("ns")-median("plain"), "ms/ns_over_plain")
	b.ReportMetric(at("ns", 1)-at("plain", 1), "quiet_ms/ns_over_plain")
	b.ReportMetric(median("bwrap")/median("by_hand"), "bwrap_times_by_hand")
	b.ReportMetric(at("bwrap", 1)/at("by_hand", 1), "quiet_bwrap_times_by_hand")
	b.ReportMetric(median("bwrap")/median("same_view"), "bwrap_times_same_view")
	b.ReportMetric(at("bwrap", 1)/at("same_view", 1), "quiet_bwrap_times_same_view")
}

// sameView is what the lane tells bubblewrap, but for the files in /etc that it
// makes itself: what the same view costs somebody who starts a program in it.
func sameView(b *testing.B, l *bwrap) []string {
	s := sandbox.ViewSpec{Work: l.cfg.Work}
	v, err := s.View()
	if err != nil {
		b.Fatal(err)
	}
	argv, files, err := l.command(&sandbox.Plan{Mounts: v.Mounts, Work: "/", Scratch: scratchBytes}, 3)
	if err != nil {
		b.Fatal(err)
	}
	closeAll(files)
	var kept []string
	for i := 1; argv[i] != "--"; i++ {
		if argv[i] == "--perms" && argv[i+2] == "--file" {
			i += 4
			continue
		}
		kept = append(kept, argv[i])
	}
	return append(kept, "--")
}

// byHand is what somebody writes who wants a program to see the system and a
// folder, and nothing of the network.
func byHand(path string) []string {
	return []string{
		"--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib",
		"--symlink", "usr/lib64", "/lib64",
		"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--die-with-parent", "--", path,
	}
}

// BenchmarkBroker is what the broker adds to a call of a program's, in a folder
// where something is kept from it, or links are judged: median of the rounds of
// many calls, each beside the same calls where nothing is. The calls of links are
// two, or three, and programs that are started.
func BenchmarkBroker(b *testing.B) {
	calls := 2000
	if testing.Short() {
		calls = 50
	}
	l, plain := newLane(b, "ns"), newLane(b, "ns", func(c *Config) { c.noLinks = true })
	folder := func(kept ...Folder) (list []Folder) {
		dir := shared(b)
		put(b, dir+"/.env", "secret\n")
		put(b, dir+"/there", "text\n")
		list = append(list, Folder{Path: dir, Access: ReadWrite})
		for _, k := range kept {
			list = append(list, Folder{Path: dir + "/" + k.Path, Access: k.Access})
		}
		return list
	}
	free, links, protected, denied := folder(), folder(), folder(Folder{Path: "there", Access: ReadOnly}),
		folder(Folder{Path: ".env", Access: Hidden})
	for _, bb := range []struct {
		name, call string
		kept       []Folder
	}{
		{"change/protected", ": >new", protected},
		{"change/denied", ": >new", denied},
		{"read/protected", ": <there", protected},
		{"read/denied", ": <there", denied},
		{"read/links", ": <there", links},
		{"change/links", ": >new", links},
		{"move/links", "mv there new; mv new there", links},
		{"make/links", "ln -sfn there l", links},
	} {
		b.Run(bb.name, func(b *testing.B) {
			took := func(l Lane, folders []Folder) time.Duration {
				c := shell(b, fmt.Sprintf("cd %s; i=0; while [ $i -lt %d ]; do i=$((i+1)); %s; done", folders[0].Path, calls,
					bb.call))
				c.Folders = folders
				began := time.Now()
				if r, err := l.Run(b.Context(), c); err != nil || r.ExitCode != 0 {
					b.Fatal(r, err)
				}
				return time.Since(began)
			}
			var more []time.Duration
			for b.Loop() {
				without := took(plain, free)
				more = append(more, took(l, bb.kept)-without)
			}
			slices.Sort(more)
			b.ReportMetric(float64(more[len(more)/2].Nanoseconds())/1000/float64(calls), "added_µs/call")
		})
	}
}
