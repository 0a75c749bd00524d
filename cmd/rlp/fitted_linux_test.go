package main

import (
	"bufio"
	"errors"
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
