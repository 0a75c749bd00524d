package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/launcher/lint"
)

// policies tells which files that narrow agents would refuse a launch, or are read
// by none.
func (c *checkup) policies(h home.Home, cfg config.Config) {
	const check = "policies"
	for _, f := range c.Policies(h, cfg) {
		at := tomlfile.Pos{File: f.Path, Line: f.Line, Column: f.Column}.String()
		problem, mend := f.Message, cmp.Or(f.Hint, "edit "+f.Path)
		if at != "" && f.Code != policy.CodeFile {
			problem = at + ": " + problem
		}
		if f.Code == policy.CodeFile && f.Hint == "" {
			mend = c.owner(f.Path)
		}
		if f.Severity != policy.SeverityError && f.Hint == lint.HintUnread { // it may well be that the agent has not run yet
			c.list = append(c.list, Finding{Check: check, OK: true, Note: problem})
			continue
		}
		c.found(check, problem, mend)
	}
	c.fine(check)
}

// keys tells whether the keys of the log can be read as launches read them.
func (c *checkup) keys(h home.Home) {
	const check = "keys"
	_, err := evidence.ReadKey(h.Root(), c.Tenant)
	_, also := journal.KeyID(h.Journal())
	for _, err := range []error{err, also} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.found(check, err.Error(), c.mend(err, "bring the key back from where the home was saved"))
		}
	}
	c.fine(check)
}

// problem is what is wrong, without what mends it.
func problem(err error) string {
	if file, is := errors.AsType[*tomlfile.FileError](err); is {
		return file.Path + ": " + file.Msg
	}
	if at, is := errors.AsType[*tomlfile.Error](err); is {
		return at.Error()
	}
	return err.Error()
}

// mend is the command for a file that cannot be read; other is for the rest.
func (c *checkup) mend(err error, other string) string {
	if file, is := errors.AsType[*tomlfile.FileError](err); is {
		return cmp.Or(file.Hint, c.owner(file.Path))
	}
	if mode, is := errors.AsType[*home.ModeError](err); is {
		if info, err := os.Lstat(mode.Path); err == nil && info.Mode().IsRegular() {
			return cmp.Or(c.ownedBy(mode.Path, info), "chmod 600 "+shell(mode.Path))
		}
		return other
	}
	if at, is := errors.AsType[*tomlfile.Error](err); is {
		return cmp.Or(at.Hint, other)
	}
	return other
}

// owner is the command for a file that is refused, or cannot be opened, for what it is.
func (c *checkup) owner(path string) string {
	if info, err := os.Lstat(path); err == nil {
		return cmp.Or(c.ownedBy(path, info), "chmod u+r "+shell(path))
	}
	return "ls -ld " + shell(filepath.Dir(path)) + " " + shell(path)
}

// ownedBy is the command that makes a file this user's; "": it is.
func (c *checkup) ownedBy(path string, info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != c.UID && st.Uid != 0 {
		return fmt.Sprintf("sudo chown %d %s", c.UID, shell(path))
	}
	return ""
}
