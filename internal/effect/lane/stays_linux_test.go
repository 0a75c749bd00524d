package lane

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const trying = `
try() { "$@" 2>/dev/null && echo "THROUGH: $*"; }
`

// What a lease bounds stays where it is, where programs may write it as all around
// it: a name outside of it would be there after the lease.
func TestProgramsMoveNothingThatIsLeased(t *testing.T) {
	const takes = trying + `
try ln x/priv p; try ln x/priv x/p; try mv x/priv q; try mv x/priv x/q; try mv -T x y; mkdir -p z; touch z/priv; try mv -T z/priv x2; try mv -T z x
try ln tree/f t; try mv tree/sub s; try mv tree t2
`
	const may = `
set -e
echo a >x/priv; echo b >tree/new; mv tree/new tree/sub/old; ln tree/f tree/g; echo c >tmp; mv tmp x/priv; echo d >in; mv in tree/in; ln x/other o; mv o o2
rm x/priv tree/g; echo e >x/priv; cat x/priv tree/sub/old tree/in
`
	eachSandbox(t, func(t *testing.T, name string) {
		place := func(leased bool) (string, *Command) {
			dir := shared(t)
			for _, d := range []string{"/x", "/tree/sub"} {
				if err := os.MkdirAll(dir+d, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for _, f := range []string{"/x/priv", "/x/other", "/tree/f"} {
				put(t, dir+f, "text\n")
			}
			c := shell(t, "")
			c.Folders = []Folder{{Path: dir, Access: ReadWrite}}
			if leased {
				c.Leased = []string{dir + "/tree", dir + "/x/priv"}
			}
			return dir, c
		}
		dir, c := place(true)
		c.Argv[2] = "cd " + dir + takes
		r := run(t, newLane(t, name), c)
		if got := string(r.Stdout.Data); got != "THROUGH: mv -T z/priv x2\n" {
			t.Errorf("%s\n%s", got, r.Stderr.Data)
		}
		var st unix.Stat_t
		if err := unix.Lstat(dir+"/x/priv", &st); err != nil || st.Nlink != 1 {
			t.Errorf("%v, %d names", err, st.Nlink)
		}
		dir, c = place(true)
		c.Argv[2] = "cd " + dir + may
		if r := run(t, newLane(t, name), c); r.ExitCode != 0 || string(r.Stdout.Data) != "e\nb\nd\n" {
			t.Errorf("%+v\n%s\n%s", r, r.Stdout.Data, r.Stderr.Data)
		}
		dir, c = place(false) // control
		c.Argv[2] = "cd " + dir + takes
		r = run(t, newLane(t, name), c)
		for _, want := range []string{"ln x/priv p", "mv x/priv q", "mv -T x y", "ln tree/f t", "mv tree/sub s"} {
			if !strings.Contains(string(r.Stdout.Data), "THROUGH: "+want+"\n") {
				t.Errorf("control: %s is refused to anybody\n%s%s", want, r.Stdout.Data, r.Stderr.Data)
			}
		}
	})
}

// A folder that the operator calls untrusted, there or not, is where it is called so:
// what is put in it later lies nowhere else.
func TestProgramsReplaceNoUntrustedFolder(t *testing.T) {
	const tries = trying + `
try mv -T a/dl a/old; try ln -s ../b a/dl; try rmdir a/dl; try mv -T b a/dl; try mv a a2; try ln -sfn b a/later; try ln b/f a/later; ln -s b l; try mv -T l a/later; try rmdir above; try ln -s b above
`
	eachSandbox(t, func(t *testing.T, name string) {
		for _, named := range []bool{true, false} {
			dir := shared(t)
			for _, d := range []string{"/a/dl", "/b", "/above"} {
				if err := os.MkdirAll(dir+d, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			put(t, dir+"/b/f", "text\n")
			c := shell(t, "cd "+dir+tries+
				"mkdir a/later above/deep; echo x >a/dl/new; cp a/dl/new b; echo y >a/f; mv -T a/f a/g; cat b/new")
			c.Folders = []Folder{{Path: dir, Access: ReadWrite}}
			l := newLane(t, name, func(c *Config) {
				if named {
					c.Untrusted = []string{dir + "/a/dl", dir + "/a/later", dir + "/above/deep"}
				}
			})
			r := run(t, l, c)
			got := strings.Contains(string(r.Stdout.Data), "THROUGH")
			if named && (got || !strings.HasSuffix(string(r.Stdout.Data), "x\n")) || !named &&
				strings.Count(string(r.Stdout.Data), "THROUGH") < 5 {
				t.Errorf("%v: %s%s", named, r.Stdout.Data, r.Stderr.Data)
			}
		}
	})
}

// What lies in an untrusted folder gets no name outside of it, where the next run
// would read it unmarked, nor does what lies outside get one in it; within such
// folders files move as anywhere, and into them.
func TestProgramsTakeNothingOutOfAnUntrustedFolder(t *testing.T) {
	const takes = trying + `
exec 3<dl/f 4<file; try ln dl/f out; try ln dl/f later/out; try ln -L /proc/self/fd/3 out2; try mv dl/f out; try mv dl/sub out; try mv dl/sub/g out; try ln own dl/own; cd dl; try ln f ../out; try mv f ../out; try ln -L /dev/fd/3 ../out3; cd ..
try ln file k; try ln /proc/self/cwd/file k; try ln file /proc/self/cwd/k; try ln -L /proc/self/fd/4 k; try mv file k; try mv /proc/self/cwd/file k
`
	const may = `
set -e
ln dl/f dl/sub/f; mv dl/sub/f dl/f2; mv own dl/own; mv dl/own dl2/own; ln dl2/own dl/own; mkdir dl/new; mv dl/new dl2; ln own2 own3; mv own3 own4; cp dl/f own5; rm dl/f; cat own5; echo x >>file; cp file own6
`
	eachSandbox(t, func(t *testing.T, name string) {
		for _, more := range [][]Folder{nil, {{Path: "config", Access: ReadOnly}}} {
			try := func(untrusted bool, script string) *Result {
				dir := shared(t)
				for _, d := range []string{"/dl/sub", "/dl2", "/later"} {
					if err := os.MkdirAll(dir+d, 0o700); err != nil {
						t.Fatal(err)
					}
				}
				for _, f := range []string{"/dl/f", "/dl/sub/g", "/own", "/own2", "/config", "/file"} {
					put(t, dir+f, "text\n")
				}
				c := shell(t, "cd "+dir+script)
				c.Folders = []Folder{{Path: dir, Access: ReadWrite}}
				for _, f := range more {
					c.Folders = append(c.Folders, Folder{Path: dir + "/" + f.Path, Access: f.Access})
				}
				return run(t, newLane(t, name, func(c *Config) {
					if untrusted {
						c.Untrusted = []string{dir + "/dl", dir + "/dl2", dir + "/file"}
					}
				}), c)
			}
			if r := try(true, takes); strings.Contains(string(r.Stdout.Data), "THROUGH") {
				t.Errorf("%v: %s\n%s", more, r.Stdout.Data, r.Stderr.Data)
			}
			if r := try(true, may); r.ExitCode != 0 || string(r.Stdout.Data) != "text\n" {
				t.Errorf("%v: %+v\n%s", more, r, r.Stderr.Data)
			}
			r := try(false, takes)
			for _, want := range []string{"ln dl/f out", "ln dl/f later/out", "mv dl/sub/g out", "ln own dl/own", "ln file k"} {
				if !strings.Contains(string(r.Stdout.Data), "THROUGH: "+want+"\n") {
					t.Errorf("control: %v: %s is refused to anybody\n%s%s", more, want, r.Stdout.Data, r.Stderr.Data)
				}
			}
		}
	})
}

// The kernel moves and removes nothing by a name that is "." or "..", and says why.
func TestAPathThatEndsInADot(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		for _, more := range []string{"", "config"} {
			dir, _ := linked(t)
			c := shell(t, "cd "+dir+"; mkdir -p x w/y; rmdir x/.; mv -T w/. w2; rmdir w/..; rmdir w/y/..; mkdir x/.; ln -s f "+
				"x/.; ls -d x w/y")
			c.Folders = []Folder{{Path: dir, Access: ReadWrite}}
			if more != "" {
				put(t, dir+"/"+more, "kept\n")
				c.Folders = append(c.Folders, Folder{Path: dir + "/" + more, Access: ReadOnly})
			}
			r := run(t, newLane(t, name), c)
			says := string(r.Stderr.Data)
			if string(r.Stdout.Data) != "w/y\nx\n" || strings.Count(says, "Invalid argument") != 1 ||
				strings.Count(says, "resource busy") != 1 || strings.Count(says, "not empty") != 2 ||
				strings.Count(says, "File exists") != 1 {
				t.Errorf("%q: %s%s", more, r.Stdout.Data, says)
			}
		}
	})
}
