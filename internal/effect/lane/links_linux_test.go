package lane

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// linked is a folder that an agent may write, with folders of others around it.
func linked(t testing.TB) (dir string, folders []Folder) {
	t.Helper()
	base := shared(t)
	dir = base + "/data"
	for _, d := range []string{
		"secret", "ro/in", "data/sub", "data/a/b/c", "data/tree/deep", "data/file.d", "data/has",
		"work",
	} {
		if err := os.MkdirAll(base+"/"+d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	put(t, base+"/secret/s", "secret\n")
	put(t, base+"/ro/f", "text\n")
	put(t, dir+"/f", "text\n")
	for name, text := range map[string]string{
		"old": base + "/secret", "chain": "old", "up": "../secret", "loop": "loop", "tree/deep/l": base + "/secret",
		"a/b/c/rel": "../../x", "in": "a/b", "has/deep": "../a",
	} {
		if err := os.Symlink(text, dir+"/"+name); err != nil {
			t.Fatal(err)
		}
	}
	return dir, []Folder{
		{Path: dir, Access: ReadWrite},
		{Path: base + "/ro", Access: ReadOnly},
		{Path: base + "/ro/no", Access: Hidden},
		{Path: dir + "/sub", Access: ReadWrite},
		{Path: dir + "/missing", Access: ReadWrite},
		{Path: dir + "/above/deep", Access: ReadWrite},
		{Path: dir + "/file.d", Access: ReadWrite},
	}
}

// planting are attempts to have a later launch follow a link, or miss a folder;
// each is made by the oldest call and by the newest.
const planting = `
base=${PWD%/*}
try() { "$@" 2>/dev/null && echo "THROUGH: $*"; }
n=0
for l in old chain up loop tree/deep/l; do
	n=$((n+1)); try ln -P $l l$n; try ln -s $l s$n; try mv -T $l m$n
done
for text in $base/secret ../secret old/x in/../old in/../../../secret ./up chain tree/deep/l/y / /etc $base $base/ro/no /proc/self/root$base/secret "" .. ../.. \
	$base/ro/../secret /tmp; do
	n=$((n+1)); try ln -s "$text" t$n; try ln -sfT "$text" f2
done
try mv -T tree t; try mv -T tree/deep d; try mv -T a/b/c c
for p in missing above sub; do try ln -s a $p; try ln -P in $p; try mv -T in $p; done
try mv -T has above
for p in sub file.d above/deep missing; do try mv -T $p m; try rmdir $p; done
try rm -r sub; try mv -T a sub; try ln -sfn a sub; try mv -T above m
`

//rlp:holds K20 K44
func TestProgramsPlantNoLinks(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		for what, more := range map[string][]Folder{
			"free": nil, "guarded": {{Path: "config", Access: ReadOnly}},
			"denied": {{Path: ".env", Access: Hidden}},
		} {
			dir, folders := linked(t)
			c := shell(t, "cd "+dir+planting)
			c.Folders = folders
			for _, f := range more {
				put(t, dir+"/"+f.Path, "kept\n")
				c.Folders = append(c.Folders, Folder{Path: dir + "/" + f.Path, Access: f.Access})
			}
			if r := run(t, newLane(t, name), c); strings.Contains(string(r.Stdout.Data), "THROUGH") {
				t.Errorf("%s: %s\n%s", what, r.Stdout.Data, r.Stderr.Data)
			}
			if info, err := os.Lstat(dir + "/sub"); err != nil || !info.IsDir() {
				t.Errorf("%s: %v, %v", what, info, err)
			}
		}
		// control: where nothing judges links
		dir, folders := linked(t)
		c := shell(t, "cd "+dir+planting)
		c.Folders = folders
		r := run(t, newLane(t, name, func(c *Config) { c.noLinks = true }), c)
		for _, want := range []string{
			"ln -P old l1", "ln -s chain s2", "mv -T up m3", "ln -s /etc t15",
			"ln -sfT ../secret f2", "mv -T tree t", "mv -T a/b/c c", "ln -s a missing", "mv -T sub m",
		} {
			if !strings.Contains(string(r.Stdout.Data), "THROUGH: "+want+"\n") {
				t.Errorf("control: %s is refused to anybody\n%s", want, r.Stdout.Data)
			}
		}
	})
}

// legitimate is what programs do with links, and with folders, in what their agent
// holds; the rest is theirs alone.
const legitimate = `
set -e
ln -s f l1; ln -s ./a/b l2; ln -s $PWD/f l3; ln -s ../ro/f l4; ln -s later l5; ln -s $PWD/a/none l6; ln -s ../../f a/b/l7; ln -s l1 l8
cat l1 l3 l4 a/b/l7 l8; readlink l5
ln -P l1 l9; ln f f3; mv l1 l10; mv l2 a/l2 2>/dev/null || mv l2 l11; mv -n f3 f4; mv f4 a/f4; mv a/f4 .
mkdir -p pkg/bin node_modules/.bin node_modules/p; echo run >node_modules/p/cli.js; ln -s ../p/cli.js node_modules/.bin/cli; cat node_modules/.bin/cli
mv node_modules nm; cat nm/.bin/cli; cp -a nm nm2; tar cf t.tar nm; mkdir x; tar xf t.tar -C x; cat x/nm/.bin/cli; rm -r nm nm2 x
mkdir -p r/q/s; rmdir -p r/q/s; mkdir e; mv -T e e2; rmdir e2
ln -s /etc /tmp/l; mv /tmp/l /tmp/m; mkdir /tmp/d; mv /tmp/d /tmp/e; rmdir /tmp/e; cd $HOME; ln -s /etc l; mkdir d; mv -T d e; mv l e/l; rm -r e
`

func TestProgramsHaveTheirOwnLinks(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		for _, more := range [][]Folder{nil, {{Path: "config", Access: ReadOnly}}} {
			dir, folders := linked(t)
			l := newLane(t, name)
			c := shell(t, "cd "+dir+legitimate)
			c.Env = append(c.Env, "HOME="+workOf(l))
			c.Folders = folders
			for _, f := range more {
				c.Folders = append(c.Folders, Folder{Path: dir + "/" + f.Path, Access: f.Access})
			}
			const want = "text\ntext\ntext\ntext\ntext\nlater\nrun\nrun\nrun\n"
			if r := run(t, l, c); r.ExitCode != 0 || string(r.Stdout.Data) != want {
				t.Errorf("%+v\n%s\n%s", r, r.Stdout.Data, r.Stderr.Data)
			}
		}
	})
}

func workOf(l Lane) string {
	if b, ok := l.(*bwrap); ok {
		return b.cfg.Work
	}
	return l.(*ns).cfg.Work
}

// A folder that is granted in /tmp lies in one that is the program's own.
func TestLinksAreJudgedBelowAPrivateFolder(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		dir, err := os.MkdirTemp("/tmp", "lane-links")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		c := shell(t, "cd "+dir+`
try() { "$@" 2>/dev/null && echo "$*"; }
try ln -s /etc l; try ln -s ../l m; try mv -T $PWD /tmp/moved; try rmdir $PWD
try ln -s none in; try ln -s /etc /tmp/l; try mv /tmp/l /tmp/l2; mkdir /tmp/d; try mv /tmp/d /tmp/e; try rmdir /tmp/e`)
		c.Folders = []Folder{{Path: dir, Access: ReadWrite}}
		const want = "ln -s none in\nln -s /etc /tmp/l\nmv /tmp/l /tmp/l2\nmv /tmp/d /tmp/e\nrmdir /tmp/e\n"
		if r := run(t, newLane(t, name), c); string(r.Stdout.Data) != want {
			t.Errorf("%s%s", r.Stdout.Data, r.Stderr.Data)
		}
	})
}

// plants is a program that makes the calls which a shell does not, in folders of
// its agent's, and says what came through.
func plants(dir string) string {
	if err := os.Chdir(dir); err != nil {
		return err.Error()
	}
	secret := dir[:strings.LastIndexByte(dir, '/')] + "/secret"
	var through []string
	try := func(name string, err error) {
		if err == nil {
			through = append(through, name)
		}
	}
	open := func(p string, flags int) int {
		fd, _ := unix.Open(p, flags|unix.O_CLOEXEC, 0)
		return fd
	}
	here, link, a := open(".", unix.O_PATH), open("old", unix.O_PATH|unix.O_NOFOLLOW), open("a", unix.O_RDONLY)
	try("symlinkat", unix.Symlinkat(secret, here, "l1"))
	try("symlinkat by a descriptor and ..", unix.Symlinkat("../secret", a, "../l2"))
	try("symlinkat in /proc/self/cwd", unix.Symlinkat(secret, unix.AT_FDCWD, "/proc/self/cwd/l3"))
	try("symlinkat in /proc/self/fd", unix.Symlinkat(secret, unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d/l4", here)))
	try("symlinkat in /proc/self/root", unix.Symlinkat(secret, unix.AT_FDCWD, "/proc/self/root"+dir+"/l5"))
	try("linkat of a descriptor", unix.Linkat(link, "", here, "l6", unix.AT_EMPTY_PATH))
	try("linkat of /proc/self/fd", unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", link), here, "l7",
		unix.AT_SYMLINK_FOLLOW))
	try("renameat", unix.Renameat(here, "old", here, "l8"))
	try("renameat2", unix.Renameat2(here, "old", here, "l9", unix.RENAME_NOREPLACE))
	try("exchange", unix.Renameat2(here, "old", here, "f", unix.RENAME_EXCHANGE))
	try("exchange of a granted folder", unix.Renameat2(here, "sub", here, "a", unix.RENAME_EXCHANGE))
	try("unlinkat of a granted folder", unix.Unlinkat(here, "sub", unix.AT_REMOVEDIR))
	try("in a thread", <-inThread(func() error { return unix.Symlink(secret, "l10") }))
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY}
	if fd, err := unix.Openat2(here, "a", &how); err == nil {
		through = append(through, "openat2")
		_ = unix.Close(fd)
	}
	// what is harmless works all the same
	if fd := open(".", unix.O_TMPFILE|unix.O_WRONLY); fd >= 0 {
		if err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), here, "t",
			unix.AT_SYMLINK_FOLLOW); err != nil {
			through = append(through, "a file without a name has none: "+err.Error())
		}
	}
	if err := unix.Symlinkat("../f", a, "l11"); err != nil {
		through = append(through, "a link that stays: "+err.Error())
	}
	through = append(through, swaps(secret)...)
	if through == nil {
		return "nothing came through in " + dir
	}
	return strings.Join(through, ", ")
}

func inThread(f func() error) chan error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return done
}

// swaps changes the text and the name of links while the kernel looks at them, for
// a number of calls, and says whether one leads out that was made so.
func swaps(secret string) (through []string) {
	inside := "./a/b"
	text := make([]byte, 256)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	fill := func(with string) { copy(text, with+"\x00") }
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				fill(secret)
				fill(inside)
			}
		}
	})
	name := []byte("swapped\x00")
	for i := 0; i < 2000 && through == nil; i++ {
		_, _, errno := unix.Syscall(unix.SYS_SYMLINKAT, uintptr(unsafe.Pointer(&text[0])), ^uintptr(99),
			uintptr(unsafe.Pointer(&name[0])))
		if errno != 0 {
			continue
		}
		if is, err := os.Readlink("swapped"); err == nil && strings.HasPrefix(is, secret) {
			through = append(through, "a text that changes")
		}
		_ = os.Remove("swapped")
	}
	close(stop)
	wg.Wait()
	return through
}

//rlp:holds K20 K44
func TestNoCallPlantsALink(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		dir, folders := linked(t)
		c := &Command{
			Program: self(t), Argv: []string{"lane.test", "reach-plants", dir}, Timeout: time.Minute,
			MaxOutput: 1 << 16, Folders: folders,
		}
		if r := run(t, newLane(t, name), c); string(r.Stdout.Data) != "nothing came through in "+dir+"\n" {
			t.Errorf("%+v\n%s%s", r, r.Stdout.Data, r.Stderr.Data)
		}
		dir, c.Folders = linked(t) // control
		c.Argv[2] = dir
		r := run(t, newLane(t, name, func(c *Config) { c.noLinks = true }), c)
		for _, want := range []string{
			"symlinkat,", "symlinkat by a descriptor and ..", "symlinkat in /proc/self/cwd",
			"renameat,", "exchange of a granted folder", "in a thread",
		} {
			if !strings.Contains(string(r.Stdout.Data), want) {
				t.Errorf("control: %s is refused to anybody: %s%s", want, r.Stdout.Data, r.Stderr.Data)
			}
		}
	})
}

// Where no broker can be asked the lane says so, and works.
func TestWhereLinksAreNotJudgedTheLaneSaysSo(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		if l := newLane(t, name).Controls()[Links]; l.Level != Enforced {
			t.Errorf("%+v", l)
		}
		if l := newLane(t, name, func(c *Config) { c.noLinks = true }).Controls()[Links]; l.Level != Unsupported ||
			l.Why == "" {
			t.Errorf("%+v", l)
		}
	})
	if _, err := reported("ns", "links\nwhy"); err == nil || !err.(*UnsupportedError).links {
		t.Errorf("%v", err)
	}
}
