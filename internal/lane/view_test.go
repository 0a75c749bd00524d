package lane

import (
	"errors"
	"math/rand/v2"
	"path"
	"slices"
	"testing"
)

// shown is what a view lets a program do at p: the last mount above it decides,
// and what is kept there.
func shown(v view, p string) (Access, mountKind) {
	access, kind := Hidden, nothing
	for _, s := range v.mounts { // parents come first
		switch {
		case !isIn(p, []string{s.path}) && s.path != "/":
		case s.parted && p != s.path:
			access, kind = Hidden, nothing
		default:
			access, kind = s.access, s.kind
		}
		for _, k := range v.kept {
			if s.guarded && isIn(p, []string{k.path}) && isIn(k.path, []string{s.path}) && k.access < access {
				access = k.access
			}
		}
	}
	return access, kind
}

// held is what the agent may do at p: the deepest folder decides.
func held(folders []Folder, p string) Access {
	access, depth := Hidden, -1
	for _, f := range folders {
		if (isIn(p, []string{f.Path}) || f.Path == "/") && len(f.Path) > depth {
			access, depth = f.Access, len(f.Path)
		}
	}
	return access
}

// A program gets what the agent holds, and system programs to read; never more,
// and less only where a lane has something of its own.
//
//rlp:holds K14 K18 K44
func TestAProgramSeesNoMoreThanItsAgent(t *testing.T) {
	parts := []string{"usr", "home", "a", "b", "tmp", "srv", "lib"}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	somewhere := func() string {
		p := "/"
		for range random.IntN(4) {
			p = path.Join(p, parts[random.IntN(len(parts))])
		}
		return p
	}
	for range 20_000 {
		of := map[string]Folder{}
		for range random.IntN(7) {
			p := somewhere()
			of[p] = Folder{Path: p, Access: Access(random.IntN(3))}
		}
		var folders []Folder
		for _, f := range of {
			folders = append(folders, f)
		}
		s := viewSpec{folders: folders, work: "/work", entries: func(string) []string { return parts }}
		mounts, err := s.view()
		if err != nil {
			if !errors.Is(err, errNotKept) || held(folders, "/") != ReadWrite {
				t.Fatalf("%v: %+v", err, folders)
			}
			continue
		}
		for range 20 {
			p := somewhere()
			access, kind := shown(mounts, p)
			agent := held(folders, p)
			switch {
			case kind == private || kind == devices || kind == procs || p == "/tmp":
				continue
			case access > max(agent, systemAccess(p)):
				t.Fatalf("%s: programs may %d, the agent %d: %+v\n%+v", p, access, agent, folders, mounts)
			case access < agent && !slices.ContainsFunc(mounts.mounts, func(s mount) bool { return s.kind == private && isIn(p, []string{s.path}) }):
				t.Fatalf("%s: programs may %d, the agent %d: %+v\n%+v", p, access, agent, folders, mounts)
			}
		}
		noMasks(t, folders, mounts)
	}
}

func systemAccess(p string) Access {
	if isIn(p, systemPaths()) {
		return ReadOnly
	}
	return Hidden
}

// noMasks: what covers a name goes when what has the name is replaced. So where
// more is to be had below than at a mount, the mount is one that the lane guards by
// name, or that lies in a folder of the lane's own.
func noMasks(t *testing.T, folders []Folder, v view) {
	t.Helper()
	for i, s := range v.mounts {
		below := Hidden
		for _, o := range v.mounts[:i] {
			switch {
			case !isIn(s.path, []string{o.path}) && o.path != "/":
			case o.parted, o.kind == private:
				below = Hidden
			default:
				below = o.access
			}
		}
		if s.access < below && !slices.ContainsFunc(v.kept, func(k mount) bool { return k.path == s.path }) && s.kind != devices && s.kind != procs && s.kind != private {
			t.Fatalf("%s is a mask: %+v\n%+v", s.path, folders, v)
		}
	}
}

// Where something is mounted below a grant, programs see nothing, as the agent.
func TestMountsBelowAGrantAreEmpty(t *testing.T) {
	s := viewSpec{folders: []Folder{{Path: "/srv", Access: ReadWrite}, {Path: "/srv/b/given", Access: ReadOnly}}, mounts: []string{"/srv/a", "/srv/b"}}
	v, err := s.view()
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]Access{"/srv/x": ReadWrite, "/srv/a/x": Hidden, "/srv/b/x": Hidden, "/srv/b/given/x": ReadOnly} {
		if got, _ := shown(v, p); got != want {
			t.Errorf("%s: %d, want %d", p, got, want)
		}
	}
}

// What is kept is a name, whether something is there or not.
func TestWhatIsKeptIsAName(t *testing.T) {
	s := viewSpec{
		folders: []Folder{{Path: "/srv", Access: ReadWrite}, {Path: "/srv/a/later", Access: Hidden}, {Path: "/srv/a/later/own", Access: ReadWrite}, {Path: "/srv/there", Access: ReadOnly}, {Path: "/srv/there/not", Access: Hidden}},
		entries: func(string) []string { return nil },
	}
	v, err := s.view()
	if err != nil {
		t.Fatal(err)
	}
	want := []mount{{path: "/srv/a/later"}, {path: "/srv/there", access: ReadOnly}, {path: "/srv/there/not"}}
	if !slices.Equal(v.kept, want) || !slices.ContainsFunc(v.mounts, func(s mount) bool { return s.path == "/srv" && s.guarded }) {
		t.Errorf("%+v", v)
	}
}

func FuzzPlan(f *testing.F) {
	p := plan{
		inside: true, mounts: []mount{{path: "/usr", kind: system, access: ReadOnly}, {path: "/srv", access: ReadWrite, guarded: true, mountedOver: true}},
		kept: []mount{{path: "/srv/a"}},
		work: "/w", file: "/bin/true", dev: 1 << 40, ino: 2, script: true, dir: ".", argv: []string{"true", ""}, env: []string{"A=b"}, memory: 3, pids: 4, scratch: 5,
	}
	f.Add(p.encode())
	f.Add([]byte{4, 1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := decodePlan(data)
		if err != nil {
			return
		}
		q, err := decodePlan(p.encode())
		if err != nil || len(q.mounts) != len(p.mounts) || !slices.Equal(q.argv, p.argv) || !slices.Equal(q.mounts, p.mounts) || !slices.Equal(q.kept, p.kept) || q.file != p.file {
			t.Errorf("%+v became %+v, %v", p, q, err)
		}
	})
}
