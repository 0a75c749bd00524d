//go:build linux || darwin

package links

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A holder holds what lies in dir, follows nothing, and was granted one path.
type holder struct {
	dir, granted string
	asked        *[]string
}

func (h holder) Leads(p string) error {
	*h.asked = append(*h.asked, p)
	if !Within(p, h.dir) {
		return unix.EACCES
	}
	return nil
}

func (h holder) Granted(p string) bool { return p == h.granted }

func (h holder) List(at int, name string) (int, error) {
	return unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

func TestALinkIsJudgedFromWhereItIsToLie(t *testing.T) {
	for _, c := range []struct {
		place, text, from, to string
		asked                 string
		err                   error
	}{
		{place: "/d/a/l", text: "../x", asked: "/d/x"},
		{place: "/d/l", text: "../x", asked: "/x", err: unix.EACCES},
		{place: "/d/l", text: "x/./y/", asked: "/d/x/y"},
		{place: "/d/l", text: "/d//x", asked: "/d/x"},
		{place: "/d/l", text: "/dx", asked: "/dx", err: unix.EACCES},
		{place: "/d/l", text: "x/../y", err: unix.EACCES},
		{place: "/d/l", text: "", asked: "/d"},
		{place: "/d/granted", text: "x", err: unix.EBUSY},
		{place: "/d/to/l", text: "x", from: "/d/from", to: "/d/to", asked: "/d/from/x"},
		{place: "/d/to/l", text: "../tox", from: "/d/from", to: "/d/to", asked: "/d/tox"},
	} {
		var asked []string
		p := Placing{Holder: holder{"/d", "/d/granted", &asked}, From: c.from, To: c.to}
		if err := p.Link(c.place, c.text); !errors.Is(err, c.err) || strings.Join(asked, " ") != c.asked {
			t.Errorf("%+v: %v, asked about %q", c, err, asked)
		}
	}
}

func TestExpand(t *testing.T) {
	for _, c := range []struct {
		p    string
		end  int
		text string
		want string
	}{
		{"/a/l/x", 4, "b", "/a/b/x"}, {"/a/l/x", 4, "/b", "/b/x"}, {"/a/l", 4, "../b/", "/b"}, {"/l", 2, "b", "/b"},
	} {
		if got := Expand(c.p, c.end, c.text); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// What comes of an untrusted folder stays in such folders, and no file has names on
// both sides.
func TestWhatCrosses(t *testing.T) {
	folders := []string{"/d/in", "/also"}
	for _, c := range []struct {
		from, to      string
		moved, linked bool
	}{
		{"/d/a", "/d/b", false, false},
		{"/d/in/a", "/d/b", true, true},
		{"/d/in/a", "/d/inn/b", true, true},
		{"/d/in", "/d/b", true, true},
		{"/d", "/e", true, true},
		{"/d/in/a", "/d/in/x/b", false, false},
		{"/d/in/a", "/also/b", false, false},
		{"/d/a", "/d/in/b", false, true},
		{"/d/inn/a", "/d/in/b", false, true},
	} {
		if got := Crosses(folders, c.from, c.to, false); got != c.moved {
			t.Errorf("%+v: moved: %v", c, got)
		}
		if got := Crosses(folders, c.from, c.to, true); got != c.linked {
			t.Errorf("%+v: linked: %v", c, got)
		}
	}
	if Crosses([]string{"/"}, "/a", "/b", true) || !Within("/", "/") {
		t.Error("all is below the root folder")
	}
}

// A folder of more entries, or deeper, than a move looks at is copied, as across
// devices.
func TestAFolderTooLargeToLookAtIsNotMoved(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "deep")
	for range MostDeep - 1 {
		deep = filepath.Join(deep, "d")
	}
	if err := errors.Join(os.MkdirAll(deep, 0o700), os.Mkdir(dir+"/many", 0o700),
		os.Symlink("/outside", dir+"/many/l")); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if err := os.WriteFile(dir+"/many/"+strconv.Itoa(i), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(at)
	judged := func(name string, looked int) error {
		p := Placing{Holder: holder{dir, "", new([]string)}, From: dir + "/" + name, To: dir + "/to", looked: looked}
		return p.Entry(at, name, dir+"/to")
	}
	if err := judged("deep", 0); err != nil {
		t.Errorf("as deep as may be: %v", err)
	}
	if err := os.Mkdir(deep+"/one", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := judged("deep", 0); err != unix.EXDEV {
		t.Errorf("one deeper: %v", err)
	}
	if err := judged("many", 0); err != unix.EACCES {
		t.Errorf("a link that leads out: %v", err)
	}
	if err := os.Remove(dir + "/many/l"); err != nil {
		t.Fatal(err)
	}
	if err := judged("many", MostMoved-10); err != nil {
		t.Errorf("as many as may be: %v", err)
	}
	if err := judged("many", MostMoved-9); err != unix.EXDEV {
		t.Errorf("one more: %v", err)
	}
}

// vanishing takes away all files of a folder at the first link that it hears of.
type vanishing struct {
	holder
	away string
}

func (v vanishing) Leads(p string) error {
	if err := os.RemoveAll(v.away + "/l1"); err != nil {
		return err
	}
	if err := os.RemoveAll(v.away + "/l2"); err != nil {
		return err
	}
	return v.holder.Leads(p)
}

func TestWhatIsNotThereAnyMoreIsNotJudged(t *testing.T) {
	dir := t.TempDir()
	in := dir + "/in"
	if err := errors.Join(os.Mkdir(in, 0o700), os.Symlink("x", in+"/l1"), os.Symlink("x", in+"/l2")); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(at)
	var asked []string
	p := Placing{Holder: vanishing{holder{dir, "", &asked}, in}, From: in, To: dir + "/to"}
	if err := p.Entry(at, "in", dir+"/to"); err != nil || len(asked) != 1 {
		t.Errorf("%v, asked about %q", err, asked)
	}
	if err := p.Entry(at, "none", dir+"/to"); err != unix.ENOENT { // control: what the call itself names
		t.Errorf("what is moved itself: %v", err)
	}
}

func TestNoFileIsLinkedWhereAPathIsGranted(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/f", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(at)
	p := Placing{Holder: holder{dir, dir + "/granted", new([]string)}}
	if err := p.Named(at, "f", dir+"/granted"); err != unix.EBUSY {
		t.Errorf("at the granted path: %v", err)
	}
	if err := p.Named(at, "f", dir+"/other"); err != nil {
		t.Errorf("beside it: %v", err)
	}
}
