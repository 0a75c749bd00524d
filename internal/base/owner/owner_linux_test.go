package owner

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"runloop.dev/rlp/internal/base/owner/ownertest"
)

const (
	passwd = "root:x:0:0:root:/root:/bin/bash\nann:x:1000:1000::/home/ann:/bin/sh\nbob:x:1001:1001::/home/bob:/bin/sh\n"
	group  = "root:x:0:\nann:x:1000:\nbob:x:1001:\nstaff:x:50:ann\n"
)

// of are accounts that these texts say; "" is no file.
func of(t *testing.T, passwd, group string) accounts {
	t.Helper()
	dir := t.TempDir()
	a := accounts{filepath.Join(dir, "passwd"), filepath.Join(dir, "group")}
	for path, text := range map[string]string{a.passwd: passwd, a.group: group} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

type file struct {
	fs.FileInfo
	mode fs.FileMode
	stat syscall.Stat_t
}

func (f *file) Mode() fs.FileMode { return f.mode }
func (f *file) Sys() any          { return &f.stat }

// A group's right to write counts for nothing where nobody else is in the group,
// and wherever that cannot be told it counts.
//
//rlp:holds D9
func TestPrivateGroup(t *testing.T) {
	with := func(members string) string { return strings.Replace(group, ":1000:", ":1000:"+members, 1) }
	for name, c := range map[string]struct {
		passwd, group string
		uid, gid      uint32
		who           string // "": nobody
	}{
		"control":                  {passwd, group, 1000, 1000, ""},
		"root's":                   {passwd, group, 0, 0, ""},
		"lists its owner":          {passwd, with("ann"), 1000, 1000, ""},
		"has a member":             {passwd, with("bob"), 1000, 1000, `"bob" is a member`},
		"has its owner and more":   {passwd, with("ann,bob"), 1000, 1000, `"bob" is a member`},
		"another's primary":        {passwd + "eve:x:1002:1000::/:/bin/sh\n", group, 1000, 1000, `primary group of "eve"`},
		"of another user":          {passwd, group, 1000, 1001, "not the private group of its owner"},
		"not primary":              {passwd, group, 1000, 50, "the group staff"},
		"root's file, ann's group": {passwd, group, 0, 1000, "not the private group of its owner"},
		"another name":             {passwd, strings.Replace(group, "ann:", "users:", 1), 1000, 1000, "the group users"},
		"no such group":            {passwd, group, 1000, 4711, "the group 4711"},
		"no such user":             {passwd, group, 4711, 1000, "primary group of"},
		"unknown user and group":   {passwd, group + "u:x:4711:\n", 4711, 4711, "0 users of the number"},
		"two groups of a number":   {passwd, group + "eves:x:1000:eve\n", 1000, 1000, "2 groups of this number"},
		"two names of a user":      {passwd + "eve:x:1000:1000::/:/bin/sh\n", group, 1000, 1000, `owner "eve"`},
		"two users of a name":      {passwd + "ann:x:1002:1002::/:/bin/sh\n", group, 1000, 1000, "is not"},
		"no passwd":                {"", group, 1000, 1000, "cannot be told"},
		"no group":                 {passwd, "", 1000, 1000, "cannot be told"},
		"other sources":            {passwd + "+::::::\n", group, 1000, 1000, "cannot be told"},
		"other groups":             {passwd, group + "+:::\n", 1000, 1000, "cannot be told"},
		"a number of two forms":    {passwd + "eve:x:1002:01000::/:/bin/sh\n", group, 1000, 1000, "cannot be told"},
		"damaged":                  {passwd, group + "ann:x:1000\n", 1000, 1000, "line 5 of"},
		"too long":                 {passwd, group + strings.Repeat("#\n", maxAccounts/2), 1000, 1000, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &file{mode: 0o664, stat: syscall.Stat_t{Uid: c.uid, Gid: c.gid}}
			from := of(t, c.passwd, c.group)
			noACL := func() error { return nil }
			who, mend := writers(f, from, noACL)
			switch {
			case c.who == "" && who != "":
				t.Errorf("%s may write", who)
			case c.who != "" && (!strings.Contains(who, c.who) || mend != "g-w"):
				t.Errorf("%q may write, which chmod %s ends; want %q", who, mend, c.who)
			}
			f.mode = 0o644
			if who, _ := writers(f, from, noACL); who != "" {
				t.Errorf("control: no group may write, and %s may", who)
			}
			f.mode = 0o666
			if who, mend := writers(f, from, noACL); who != "others" || mend != "go-w" {
				t.Errorf("all may write: %q, %q", who, mend)
			}
		})
	}
}

// What has an ACL is writable by others than its group.
//
//rlp:holds D9
func TestACL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	looks := map[string]func() error{
		"handle": func() error { return noACL(f) },
		"path":   func() error { return noACLAt(path) },
	}
	for name, c := range looks {
		if err := c(); err != nil {
			t.Errorf("control: %s: %v", name, err)
		}
	}
	if err := ownertest.Share(path, 0o664); err != nil {
		t.Fatal(err)
	}
	for name, c := range looks {
		if err := c(); err == nil || !strings.Contains(err.Error(), "ACL") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := none(syscall.EOPNOTSUPP); err == nil {
		t.Error("a file system without such lists has no others")
	}
	info := &file{mode: 0o664, stat: syscall.Stat_t{Uid: 1000, Gid: 1000}}
	if who, _ := writers(info, of(t, passwd, group), func() error { return noACL(f) }); !strings.Contains(who, "ACL") {
		t.Errorf("%q may write", who)
	}
}
