// Package owner judges who besides its owner may write to a file or folder.
package owner

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

const groupWrites, othersWrite = 0o020, 0o002

// Writers says who besides its owner may write to what f has open, and the mode
// that chmod takes to end it; "" is nobody. The owner's private group, which has
// nobody else in it, is nobody: under umask 002 all that is made is writable by it.
func Writers(f *os.File, info fs.FileInfo) (who, mend string) {
	return writers(info, system(), func() error { return noACL(f) })
}

// WritersAt is [Writers] for what is at a path, where a link is not followed.
func WritersAt(path string, info fs.FileInfo) (who, mend string) {
	return writers(info, system(), func() error { return noACLAt(path) })
}

// Strangers is [Writers] for what no group at all may write to: keys, and what
// says who is trusted.
func Strangers(info fs.FileInfo) (who, mend string) {
	switch mode := info.Mode().Perm(); {
	case mode&othersWrite != 0:
		return "others", "go-w"
	case mode&groupWrites != 0:
		return "others", "g-w"
	}
	return "", ""
}

// accounts are the files that say who is in which group. Other sources of accounts
// are not asked: what these do not say cannot be told.
type accounts struct{ passwd, group string }

func system() accounts { return accounts{"/etc/passwd", "/etc/group"} }

func writers(info fs.FileInfo, from accounts, noACL func() error) (who, mend string) {
	mode := info.Mode().Perm()
	if mode&othersWrite != 0 || mode&groupWrites == 0 {
		return Strangers(info)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "a group", "g-w"
	}
	name, err := from.private(st.Uid, st.Gid)
	if err == nil {
		err = noACL()
	}
	if err != nil {
		return fmt.Sprintf("the group %s (%v)", name, err), "g-w"
	}
	return "", ""
}

// private returns the name of a group, and why it is not the private one of a user:
// the user's primary group, by the user's name, with nobody else in it.
func (a accounts) private(uid, gid uint32) (group string, err error) {
	group = strconv.FormatUint(uint64(gid), 10)
	groups, err := read(a.group, 4)
	if err != nil {
		return group, err
	}
	var members string
	found := 0
	for _, g := range groups {
		if g[2] == strconv.FormatUint(uint64(gid), 10) {
			group, members = g[0], g[3]
			found++
		}
	}
	if found != 1 {
		return group, fmt.Errorf("%s has %d groups of this number", a.group, found)
	}
	users, err := read(a.passwd, 7)
	if err != nil {
		return group, err
	}
	if err := a.only(users, group, uid, gid); err != nil {
		return group, err
	}
	for _, m := range strings.Split(members, ",") {
		if m = strings.TrimSpace(m); m != "" && m != group {
			return group, fmt.Errorf("%q is a member of it", m)
		}
	}
	return group, nil
}

// only refuses a group that is not the primary one of the user uid, by the same
// name, or that is another's primary one as well.
func (a accounts) only(users [][]string, group string, uid, gid uint32) error {
	id, primary := strconv.FormatUint(uint64(uid), 10), strconv.FormatUint(uint64(gid), 10)
	found := 0
	for _, u := range users {
		switch {
		case u[2] == id && u[0] == group && u[3] == primary:
			found++
		case u[2] == id:
			return fmt.Errorf("it is not the private group of its owner %q", u[0])
		case u[3] == primary:
			return fmt.Errorf("it is also the primary group of %q", u[0])
		case u[0] == group:
			return fmt.Errorf("its owner, user %d, is not %q", uid, group)
		}
	}
	if found != 1 {
		return fmt.Errorf("%s has %d users of the number %d", a.passwd, found, uid)
	}
	return nil
}

// maxAccounts is how long a file of accounts may be.
const maxAccounts = 1 << 20

// read returns the lines of a file of accounts, each of which has n fields. What
// is not such a line may name anybody, and is an error.
func read(path string, n int) ([][]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("who is in it cannot be told: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxAccounts+1))
	if err != nil || len(text) > maxAccounts {
		return nil, fmt.Errorf("who is in it cannot be told: %s is too long, or cannot be read", path)
	}
	var list [][]string
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Split(line, ":")
		if len(fields) != n || strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-") || !plain(fields[2]) ||
			n == 7 && !plain(fields[3]) {
			return nil, fmt.Errorf("who is in it cannot be told: line %d of %s is not an account", i+1, path)
		}
		list = append(list, fields)
	}
	return list, nil
}

// plain reports whether a number is spelled in the one way that it is compared in.
func plain(number string) bool {
	n, err := strconv.ParseUint(number, 10, 32)
	return err == nil && strconv.FormatUint(n, 10) == number
}
