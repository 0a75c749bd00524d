package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rogpeppe/go-internal/testscript"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/launcher"
)

// say writes a line to a FIFO that an agent of the script reads, and keeps it
// open: say FIFO TEXT. Without a text there will be no more.
func say(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: say FIFO [TEXT]")
	}
	path := ts.MkAbs(args[0])
	open, _ := ts.Value(conversations{}).(map[string]*os.File)
	f := open[path]
	if f == nil {
		var err error
		f, err = os.OpenFile(path, os.O_RDWR, 0) // which waits for nobody
		ts.Check(err)
		open[path] = f
		ts.Defer(func() { _ = f.Close() })
	}
	if len(args) == 1 {
		ts.Check(f.Close())
		return
	}
	_, err := f.WriteString(args[1] + "\n")
	ts.Check(err)
}

// conversations is the key of a script's open FIFOs, by path.
type conversations struct{}

// Each line is an input, as it is; one that is too long is passed over as a
// whole, and no part of it is taken for another.
func TestLinesAreInputs(t *testing.T) {
	most := strings.Repeat("m", hostcalls.MaxInput)
	for name, c := range map[string]struct {
		stdin string
		want  []string
	}{
		"none":                    {"", nil},
		"some":                    {"one\ntwo\n", []string{"one", "two"}},
		"the last does not end":   {"one\ntwo", []string{"one", "two"}},
		"empty ones":              {"\n\n x\r\n", []string{"", "", " x\r"}},
		"no text":                 {"\x00\xff\n", []string{"\x00\xff"}},
		"as long as may be":       {most + "\nnext\n", []string{most, "next"}},
		"too long":                {most + "x\nnext\n" + most + most + "\nlast", []string{"2big", "next", "2big", "last"}},
		"too long, does not end":  {"one\n" + most + "x", []string{"one", "2big"}},
		"in the middle of a read": {strings.Repeat("a", 64<<10) + "\nb\n", []string{strings.Repeat("a", 64<<10), "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.stdin), iotest.DataErrReader(strings.NewReader(c.stdin))} {
				in := &lines{r: bufio.NewReaderSize(r, 64<<10)}
				for i, want := range append(c.want, "EOF", "EOF") {
					got, err := in.Next(t.Context())
					text := string(got)
					if f := (*hostcalls.Fail)(nil); errors.As(err, &f) {
						text = f.Errno.String()
					} else if errors.Is(err, io.EOF) {
						text = "EOF"
					}
					if text != want {
						t.Fatalf("input %d: %.60q (%d bytes), want %.60q (%d)", i, text, len(text), want, len(want))
					}
				}
			}
		})
	}
	broken := &lines{r: bufio.NewReader(io.MultiReader(strings.NewReader("half"),
		iotest.ErrReader(errors.New("on fire"))))}
	if got, err := broken.Next(t.Context()); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("half a line of a broken stdin was taken for one: %q, %v", got, err)
	}
}

// Who waits for the operator's next line is interrupted at once.
func TestWaitingForTheNextTurnIsInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	in := &lines{r: bufio.NewReader(silent{interrupt})}
	if _, err := in.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// One stdin has one reader.
func TestTurnsAndInputDoNotShareStdin(t *testing.T) {
	bundle := bundleOf(t, []byte(prints))
	for input, want := range map[string]int{
		"-": launcher.StatusUsage, `{"a":1}`: launcher.StatusOK,
		"": launcher.StatusOK,
	} {
		var said strings.Builder
		args := []string{"launch", bundle, "--home", t.TempDir(), "--turns"}
		if input != "" {
			args = append(args, "--input", input)
		}
		status := invoke(t.Context(), environment{
			args: args, stdin: strings.NewReader("{}\n"), stdout: io.Discard,
			stderr: &said,
		})
		if status != want || (want == launcher.StatusUsage) != strings.Contains(said.String(), "--input as JSON or @FILE") {
			t.Errorf("--input %s: exit %d: %s", input, status, said.String())
		}
	}
}
