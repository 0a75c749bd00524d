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
		"rlp caps profiles", "rlp caps show", "rlp caps suggest", "rlp caps whatif", "rlp config get", "rlp config list",
		"rlp config path",
		"rlp daemon status", "rlp daemon stop", "rlp doctor", "rlp kb domains", "rlp kb get", "rlp kb list", "rlp kb search",
		"rlp kb verify", "rlp kb why", "rlp lanes", "rlp mcp list", "rlp presets list", "rlp presets show",
		"rlp runs", "rlp runs cancel", "rlp runs diff",
		"rlp runs list", "rlp runs show", "rlp runs wait", "rlp secrets list", "rlp token list",
	}
}

// emptyHome has a command that only reads look into a folder of its own: for the home
// where there is none or nothing in it, else for the log and the knowledge base of a
// tenant that has nothing yet.
func emptyHome(a *app) error {
	dir, err := home.Locate(a.homeFlag, a.getenv("RUNLOOP_HOME"), a.getenv("HOME"))
	if err != nil || a.homeSet && a.homeFlag == "" {
		return nil // which opening it says
	}
	nothing := func(dir string) bool {
		entries, err := os.ReadDir(dir)
		return len(entries) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist))
	}
	ofTenant := home.At(dir, a.tenant).Root()
	if !nothing(dir) && !nothing(ofTenant) {
		return nil
	}
	if a.madeUp, err = os.MkdirTemp("", "rlp-empty-home-"); err != nil {
		return err
	}
	if a.unused = ofTenant; nothing(dir) {
		a.homeAsked, a.homeFlag, a.unused = dir, a.madeUp, dir
	}
	return nil
}

// wantedHome is the home that this invocation is about, there or not.
func wantedHome(a *app) (string, error) {
	if a.homeAsked != "" {
		return a.homeAsked, nil
	}
	return home.Locate(a.homeFlag, a.getenv("RUNLOOP_HOME"), a.getenv("HOME"))
}

// onlyReads reports whether c is a command that only reads. One that exports what
// comes needs the folder that it will come to.
func onlyReads(c *cobra.Command) bool {
	return slices.Contains(readers(), c.CommandPath()) && !c.Flags().Changed("follow")
}
