package lane

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// everyday is what programs do in a folder; it is the same where something is
// kept from them in it and where nothing is.
const everyday = `
set -e
echo one >new; echo two >>new; cat new
mkdir -p a/b/c; echo x >a/b/c/f; mv a/b/c/f a/b/g; ls -R a
sed -i s/one/three/ new; cat new
ln new hard; ln -s new soft; cat soft; echo four >>soft; cat hard; readlink soft
chmod 640 new; touch -d @86400 new; stat -c '%a %Y %h' new
mv new moved; rm soft hard; mv -T a d; rm -r d; ls
umask 027; echo u >u; mkdir v; stat -c %a u v; umask 077
truncate -s 3 moved; cat moved; echo
cp -a moved copy; cmp moved copy; test -w copy; test -w .
mkfifo pipe; rm pipe
mkdir deep; cd deep; echo rel >../rel; cd ..; cat rel; rmdir deep
echo to stdout >/dev/stdout
(cat; echo y >y) <rel >out 2>&1; cat out y
cat <<E >here
text
E
cat here; dd if=here of=dd conv=notrunc 2>/dev/null; cat dd
printf '#!/bin/sh\necho ran\n' >run; chmod 700 run; sh ./run
tar cf t.tar moved copy; mkdir x; tar xf t.tar -C x; ls x
: >many; for i in 1 2 3 4 5 6 7 8; do (echo $i >many.$i; mv many.$i m$i) & done; wait; ls | wc -l
find . -name 'm?' -delete; touch -r moved copy; ls
cd x; pwd; echo $(cd /; ls -d usr)
`

//rlp:holds K44
func TestGuardedFoldersAreLikeOthers(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		out := map[string]string{}
		for what, kept := range map[string][]Folder{
			"nothing": nil, "protected": {{Path: "config", Access: ReadOnly}}, "denied": {{Path: ".env", Access: Hidden}},
			"missing": {{Path: "sub/later", Access: Hidden}},
		} {
			dir := shared(t)
			put(t, dir+"/.env", "secret\n")
			put(t, dir+"/config", "text\n")
			c := shell(t, "cd "+dir+everyday)
			c.Folders = []Folder{{Path: dir, Access: ReadWrite}}
			for _, k := range kept {
				c.Folders = append(c.Folders, Folder{Path: dir + "/" + k.Path, Access: k.Access})
			}
			r := run(t, newLane(t, name), c)
			out[what] = strings.ReplaceAll(string(r.Stdout.Data)+string(r.Stderr.Data), dir, "DIR")
			if r.ExitCode != 0 || what != "nothing" && out["nothing"] != "" && out[what] != out["nothing"] {
				t.Errorf("%s: %+v\n%s\nwithout:\n%s", what, r, out[what], out["nothing"])
			}
			if text, err := os.ReadFile(dir + "/u"); err != nil || string(text) != "u\n" {
				t.Errorf("%s: %q, %v", what, text, err)
			}
		}
		if out["protected"] != out["denied"] || out["denied"] != out["nothing"] || out["missing"] != out["nothing"] {
			t.Errorf("%q", out)
		}
	})
}

// What the host replaces by rename stays what it is by its name, in a program
// that is running: the mount that covered it is gone.
//
//rlp:holds K13 K14 K44
func TestWhatTheHostReplacesStaysKept(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		dir := shared(t)
		if err := os.MkdirAll(dir+"/denied", 0o700); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{"/.env", "/denied/key", "/override"} {
			put(t, dir+f, "secret\n")
		}
		c := shell(t, "cd "+dir+`
echo >begun
until [ -e replaced ]; do cat .env denied/key later/key 2>/dev/null; echo mine 2>/dev/null >>override; done
try() { "$@" 2>/dev/null && echo "THROUGH: $*"; }
for f in .env denied/key later/key denied; do
	try cat $f; try head -c 9 <$f; try ln $f l; try mv $f m; try cp $f c; try chmod 777 $f; try truncate -s 0 $f; try rm -rf $f; try touch -d @1 $f; try ls $f/
	ln -s $f s; cat s; try chmod 777 s; rm -f s
done
for f in override kept/config; do
	try dd if=/dev/null of=$f; try mv $f m; try ln $f l; try chmod 777 $f; try rm -f $f; try sed -i s/a/b/ $f; try truncate -s 0 $f; try touch -d @1 $f
	echo mine >x; try mv -f x $f; try ln -f x $f
done
mkdir -p k; echo mine >k/config; try mv -T k kept; try mv -T kept kk; try ln -s k kept
ls | tr '\n' ' '; echo new >new && cat new; cat override`)
		c.Folders = []Folder{
			{Path: dir, Access: ReadWrite},
			{Path: dir + "/.env", Access: Hidden},
			{Path: dir + "/denied", Access: Hidden},
			{Path: dir + "/later/key", Access: Hidden},
			{Path: dir + "/override", Access: ReadOnly},
			{
				Path:   dir + "/kept/config",
				Access: ReadOnly,
			},
		}
		done := make(chan error, 1)
		go func() {
			for !exists(dir + "/begun") {
				pause()
			}
			done <- replaceAll(dir)
		}()
		r := run(t, newLane(t, name), c)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if out := string(r.Stdout.Data); strings.Contains(out, "secret") || strings.Contains(out, "THROUGH") ||
			!strings.HasSuffix(out, " new\nprotected\n") {
			t.Errorf("%+v\n%s\n%s", r, out, r.Stderr.Data)
		}
		for f, want := range map[string]string{
			"/.env": "secret\n", "/denied/key": "secret\n", "/later/key": "secret\n",
			"/override": "protected\n", "/kept/config": "protected\n", "/new": "new\n",
		} {
			if text, err := os.ReadFile(dir + f); err != nil || string(text) != want {
				t.Errorf("%s: %q, %v", f, text, err)
			}
		}
	})
}

// replaceAll is what editors on the host do: a file of another name takes the
// place of one.
func replaceAll(dir string) error {
	for _, f := range []string{"/.env", "/denied/key", "/later/key", "/override", "/kept/config"} {
		text := "secret\n"
		if f == "/override" || f == "/kept/config" {
			text = "protected\n"
		}
		temp := filepath.Join(filepath.Dir(dir), filepath.Base(dir)+".temp")
		for range 100 {
			if err := os.MkdirAll(filepath.Dir(dir+f), 0o700); err != nil {
				return err
			}
			if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
				return err
			}
			if err := os.Rename(temp, dir+f); err != nil {
				return err
			}
		}
	}
	if err := os.Rename(dir+"/denied", dir+"/was"); err != nil {
		return err
	}
	if err := os.RemoveAll(dir + "/was"); err != nil {
		return err
	}
	if err := os.Mkdir(dir+"/denied", 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(dir+"/denied/key", []byte("secret\n"), 0o600); err != nil {
		return err
	}
	return os.WriteFile(dir+"/replaced", nil, 0o600)
}

// raced is a program of many threads that tries all at once to get at what is
// kept, also by changing a path while the kernel looks at it. It says what came
// through.
func raced(dir string) string {
	if err := os.Chdir(dir); err != nil {
		return err.Error()
	}
	var wg sync.WaitGroup
	var through atomic.Pointer[string]
	keep := func(what string) { through.CompareAndSwap(nil, &what) }
	path := make([]byte, 16)
	begins := func(with string) func() {
		word := binary.NativeEndian.Uint64([]byte(with))
		return func() { atomic.StoreUint64((*uint64)(unsafe.Pointer(&path[0])), word) }
	}
	copy(path, "public//key\x00")
	for _, attempt := range []func(){
		func() { // a path that becomes another one
			buf := make([]byte, 16)
			fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, ^uintptr(99), uintptr(unsafe.Pointer(&path[0])), unix.O_RDONLY, 0, 0,
				0)
			if n, _ := unix.Read(int(fd), buf); errno == 0 && string(buf[:max(n, 0)]) == "secret\n" {
				keep("a path that changes was opened")
			}
			_ = unix.Close(int(fd))
		},
		begins("denied//"), begins("public//"),
		func() { // folders and links that change places
			_ = os.Rename("public", "w")
			_ = os.Symlink("denied", "public")
			if text, err := os.ReadFile("public/key"); err == nil && string(text) == "secret\n" {
				keep("through a link")
			}
			_ = os.Remove("public")
			_ = os.Rename("w", "public")
		},
		func() {
			for _, p := range []string{"denied", "denied/key"} {
				if unix.Renameat2(unix.AT_FDCWD, p, unix.AT_FDCWD, "mine", unix.RENAME_EXCHANGE) == nil ||
					os.Rename(p, "mine") == nil || os.Link(p, "mine2") == nil {
					keep(p + " was moved")
				}
			}
			if f, err := os.OpenFile("override", os.O_WRONLY, 0); err == nil {
				_ = f.Close()
				keep("override was opened for writing")
			}
		},
	} {
		wg.Go(func() {
			for attempt(); !exists("replaced"); {
				attempt()
			}
		})
	}
	_ = os.WriteFile("begun", nil, 0o600)
	wg.Wait()
	if what := through.Load(); what != nil {
		return *what
	}
	return "nothing came through in " + dir
}

//rlp:holds K13 K14 K44
func TestWhatIsKeptIsNotRaced(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		dir := shared(t)
		for _, d := range []string{"/denied", "/public", "/kept", "/later"} {
			if err := os.Mkdir(dir+d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		put(t, dir+"/public/key", "public\n")
		c := &Command{
			Program: self(t), Argv: []string{"lane.test", "reach-kept", dir}, Timeout: time.Minute, MaxOutput: 1 << 10,
			Folders: []Folder{{Path: dir, Access: ReadWrite}, {Path: dir + "/denied", Access: Hidden}, {
				Path:   dir + "/override",
				Access: ReadOnly,
			}},
		}
		done := make(chan error, 1)
		go func() {
			for !exists(dir + "/begun") {
				pause()
			}
			done <- replaceAll(dir)
		}()
		r := run(t, newLane(t, name), c)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if out := string(r.Stdout.Data); out != "nothing came through in "+dir+"\n" {
			t.Errorf("%+v\n%s%s", r, out, r.Stderr.Data)
		}
		c.Folders = c.Folders[:1] // control: it reaches what nothing keeps
		if r := run(t, newLane(t, name), c); string(r.Stdout.Data) == "nothing came through in "+dir+"\n" {
			t.Errorf("control: %s", r.Stdout.Data)
		}
	})
}

// What is granted within what is denied, and the other way round, at every depth.
//
//rlp:holds K13 K14 K44
func TestGrantsWithinGrants(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		dir := shared(t)
		if err := os.MkdirAll(dir+"/a/w/ro/rw/no", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir+"/a/w/hid/ro", 0o700); err != nil {
			t.Fatal(err)
		}
		for _, d := range []string{"", "/a", "/a/w", "/a/w/ro", "/a/w/ro/rw", "/a/w/ro/rw/no", "/a/w/hid", "/a/w/hid/ro"} {
			put(t, dir+d+"/f", d+"\n")
			put(t, dir+d+"/.env", "secret\n")
		}
		c := shell(t, "cd "+dir+`
for d in . a a/w a/w/ro a/w/ro/rw a/w/ro/rw/no a/w/hid a/w/hid/ro; do
	r=-; w=-; e=-
	cat $d/f >/dev/null 2>&1 && r=r
	(echo x >>$d/f) 2>/dev/null && (echo x >$d/new) 2>/dev/null && mv $d/new $d/new2 && rm $d/new2 && chmod 644 $d/f && w=w
	(cat $d/.env || mv $d/.env $d/x || ln $d/.env $d/x || rm $d/.env || chmod 777 $d/.env || echo >>$d/.env) >/dev/null 2>&1 && e=e
	echo $d $r$w$e
done`)
		c.Folders = []Folder{
			{Path: dir, Access: ReadOnly},
			{Path: dir + "/.env", Access: Hidden},
			{Path: dir + "/a/.env", Access: Hidden},
			{Path: dir + "/a/w", Access: ReadWrite},
			{Path: dir + "/a/w/.env", Access: Hidden},
			{Path: dir + "/a/w/ro", Access: ReadOnly},
			{Path: dir + "/a/w/ro/.env", Access: Hidden},
			{Path: dir + "/a/w/ro/rw", Access: ReadWrite},
			{Path: dir + "/a/w/ro/rw/.env", Access: Hidden},
			{Path: dir + "/a/w/ro/rw/no", Access: Hidden},
			{Path: dir + "/a/w/hid", Access: Hidden},
			{Path: dir + "/a/w/hid/ro", Access: ReadOnly},
			{Path: dir + "/a/w/hid/ro/.env", Access: Hidden},
		}
		const want = ". r--\na r--\na/w rw-\na/w/ro r--\na/w/ro/rw rw-\na/w/ro/rw/no ---\na/w/hid ---\na/w/hid/ro r--\n"
		if r := run(t, newLane(t, name), c); string(r.Stdout.Data) != want {
			t.Errorf("%s%s", r.Stdout.Data, r.Stderr.Data)
		}
		c.Folders = []Folder{{Path: dir, Access: ReadWrite}} // control
		if r := run(t, newLane(t, name), c); strings.Count(string(r.Stdout.Data), " rwe\n") != 8 {
			t.Errorf("control: %s%s", r.Stdout.Data, r.Stderr.Data)
		}
	})
}
