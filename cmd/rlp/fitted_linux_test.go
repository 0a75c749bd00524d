package main

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"runloop.dev/rlp/launcher/compose"
)

// On a terminal a message is in lines of a page, and no path in it is broken; elsewhere
// it is the one line that programs look for.
//
//rlp:holds D17
func TestMessagesOnATerminalFitAPage(t *testing.T) {
	path := "/" + strings.Repeat("folder/", 8) + "name"
	err := &compose.Error{Status: 65, Err: errors.New("reading " + path + ": " + strings.Repeat("some words ", 40))}
	keyboard, tty := ownTerminal(t)
	a := &app{environment: environment{stderr: tty, stdout: tty}}
	a.finish(err)
	a.say("a warning of " + path + " " + strings.Repeat("that is long ", 20))
	a.say("the end")
	var text []string
	for in := bufio.NewScanner(keyboard); in.Scan(); {
		line := strings.TrimRight(in.Text(), "\r")
		if text = append(text, line); line == "rlp: the end" {
			break
		}
		if n := utf8.RuneCountInString(line); n > pageWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if all := strings.Join(text, "\n"); strings.Count(all, path) != 2 || len(text) < 8 {
		t.Errorf("%d lines: %s", len(text), all)
	}
	var plain strings.Builder
	a = &app{environment: environment{stderr: &plain, stdout: &plain}}
	if a.finish(err); strings.Count(plain.String(), "\n") != 1 {
		t.Errorf("control: elsewhere it is %q", plain.String())
	}
}

// Whatever is said to a person goes through app.say, which fits it into a page. The
// rest is no message, or fits already: questions that wait on their line, the hint
// beneath an error, the marker and the events that programs read, and the summary.
//
//rlp:holds D17
func TestMessagesAreSaid(t *testing.T) {
	rest := map[string]int{"app.go": 1, "exit.go": 1, "launch.go": 2, "mcp.go": 1, "runs.go": 1, "secrets.go": 2}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "fmt.Fprint") && strings.Contains(line, "(a.stderr,") ||
				strings.Contains(line, "Fprintln(a.stderr)") {
				n++
			}
		}
		if n != rest[file] {
			t.Errorf("%s writes on stderr %d times, want %d: use app.say", file, n, rest[file])
		}
	}
}
