package lane

import (
	"bytes"
	"strconv"
	"testing"
	"time"
)

//rlp:holds K43 R84
func TestOutputIsCutWhileItIsRead(t *testing.T) {
	n := newNative(t)
	for _, c := range []struct {
		write, keep, want int
		cut               bool
	}{
		{0, 10, 0, false},
		{9, 10, 9, false},
		{10, 10, 10, false},
		{11, 10, 10, true},
		{5 << 20, 1 << 20, 1 << 20, true},
		{1, 0, 0, true},
	} {
		for stream, redirect := range []string{"", " >&2"} {
			cmd := shell(t, "head -c "+strconv.Itoa(c.write)+" /dev/zero"+redirect)
			cmd.MaxOutput = c.keep
			r := mustRun(t, n, cmd)
			got := []Output{r.Stdout, r.Stderr}
			if r.ExitCode != 0 || len(got[stream].Data) != c.want || got[stream].Cut != c.cut || len(got[1-stream].Data) != 0 ||
				got[1-stream].Cut {
				t.Errorf("%+v, stream %d: %d bytes, cut %v; exit %d", c, stream, len(got[stream].Data), got[stream].Cut, r.ExitCode)
			}
		}
	}
}

// A program that writes before it reads, one that reads nothing, one that
// closes its streams: none of them stands still.
func TestStreamsNeverStandStill(t *testing.T) {
	n := newNative(t)
	stdin := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	c := shell(t, "head -c 300000 /dev/zero; cat")
	c.Stdin, c.MaxOutput = stdin, 2<<20
	if r := mustRun(t, n, c); r.ExitCode != 0 || len(r.Stdout.Data) != 300000+len(stdin) || !bytes.HasSuffix(r.Stdout.Data,
		stdin) {
		t.Errorf("exit %d, %d bytes", r.ExitCode, len(r.Stdout.Data))
	}
	c = shell(t, "exit 0")
	c.Stdin = stdin
	if r := mustRun(t, n, c); r.ExitCode != 0 {
		t.Errorf("reads nothing: %+v", r.ExitCode)
	}
	c = shell(t, "exec 0<&- 1>&- 2>&-; sleep 0.05; exit 5")
	c.Stdin = stdin
	if r := mustRun(t, n, c); r.ExitCode != 5 {
		t.Errorf("closes its streams: %+v", r.ExitCode)
	}
	c = shell(t, "setsid sh -c 'sleep 1000' & echo done") // who holds the pipe is ended
	c.Timeout = 30 * time.Second
	if r := mustRun(t, n, c); r.TimedOut || string(r.Stdout.Data) != "done\n" {
		t.Errorf("a pipe that another holds: %+v", r)
	}
}
