package main

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/base/home"
)

// readers are the commands that only read: where there is no home, or nothing in
// it, they make nothing there.
func readers() []string {
	return []string{
		"rlp agent inspect", "rlp agent list", "rlp audit export", "rlp audit list", "rlp audit proof", "rlp audit scan",
		"rlp audit show", "rlp audit tail", "rlp audit verify", "rlp caps diff", "rlp caps explain", "rlp caps lint",
		"rlp caps profiles",
		"rlp caps show", "rlp caps suggest", "rlp caps whatif", "rlp config get", "rlp config list", "rlp config path",
		"rlp daemon status", "rlp daemon stop", "rlp doctor", "rlp kb domains", "rlp kb get", "rlp kb list", "rlp kb search",
		"rlp kb verify", "rlp kb why", "rlp lanes", "rlp mcp list", "rlp runs", "rlp runs cancel", "rlp runs diff",
		"rlp runs list", "rlp runs show", "rlp runs wait", "rlp secrets list", "rlp token list",
	}
}

// emptyHome has a command that only reads look into a home of its own where there
// is none, or nothing in it.
func emptyHome(a *app) error {
	dir, err := home.Locate(a.homeFlag, a.getenv("RUNLOOP_HOME"), a.getenv("HOME"))
	if err != nil || a.homeSet && a.homeFlag == "" {
		return nil // which opening it says
	}
	entries, err := os.ReadDir(dir)
	if len(entries) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	own, err := os.MkdirTemp("", "rlp-empty-home-")
	if err != nil {
		return err
	}
	a.homeAsked, a.homeFlag = dir, own
	return nil
}

// wantedHome is the home that this invocation is about, there or not.
func wantedHome(a *app) (string, error) {
	if a.homeAsked != "" {
		return a.homeAsked, nil
	}
	return home.Locate(a.homeFlag, a.getenv("RUNLOOP_HOME"), a.getenv("HOME"))
}

// onlyReads reports whether c is a command that only reads.
func onlyReads(c *cobra.Command) bool { return slices.Contains(readers(), c.CommandPath()) }
