package sandbox

import (
	"errors"
	"math/rand/v2"
	"path"
	"slices"
	"testing"
)

// shown is what a view lets a program do at p: the last mount above it decides,
// and what is kept there.
func shown(v View, p string) (Access, mountKind) {
	access, kind := Hidden, Nothing
	for _, s := range v.Mounts { // parents come first
		switch {
		case !IsIn(p, []string{s.Path}) && s.Path != "/":
		case s.Parted && p != s.Path:
			access, kind = Hidden, Nothing
		default:
			access, kind = s.Access, s.Kind
		}
		for _, k := range v.Kept {
			if s.guarded && IsIn(p, []string{k.Path}) && IsIn(k.Path, []string{s.Path}) && k.Access < access {
				access = k.Access
			}
		}
	}
	return access, kind
}

// held is what the agent may do at p: the deepest folder decides.
func held(folders []Folder, p string) Access {
	access, depth := Hidden, -1
	for _, f := range folders {
		if (IsIn(p, []string{f.Path}) || f.Path == "/") && len(f.Path) > depth {
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
		s := ViewSpec{Folders: folders, Work: "/work", Entries: func(string) []string { return parts }}
		mounts, err := s.View()
		if err != nil {
			if !errors.Is(err, ErrNotKept) || held(folders, "/") != ReadWrite {
				t.Fatalf("%v: %+v", err, folders)
			}
			continue
		}
		for range 20 {
			p := somewhere()
			access, kind := shown(mounts, p)
			agent := held(folders, p)
			switch {
			case kind == Private || kind == Devices || kind == Procs || p == "/tmp":
				continue
			case access > max(agent, systemAccess(p)):
				t.Fatalf("%s: programs may %d, the agent %d: %+v\n%+v", p, access, agent, folders, mounts)
			case access < agent && !slices.ContainsFunc(mounts.Mounts, func(s Mount) bool {
				return s.Kind == Private &&
					IsIn(p, []string{s.Path})
			}):
				t.Fatalf("%s: programs may %d, the agent %d: %+v\n%+v", p, access, agent, folders, mounts)
			}
		}
		noMasks(t, folders, mounts)
	}
}

func systemAccess(p string) Access {
	if IsIn(p, SystemPaths()) {
		return ReadOnly
	}
	return Hidden
}

// noMasks: what covers a name goes when what has the name is replaced. So where
// more is to be had below than at a mount, the mount is one that the lane guards by
// name, or that lies in a folder of the lane's own.
func noMasks(t *testing.T, folders []Folder, v View) {
	t.Helper()
	for i, s := range v.Mounts {
		below := Hidden
		for _, o := range v.Mounts[:i] {
			switch {
			case !IsIn(s.Path, []string{o.Path}) && o.Path != "/":
			case o.Parted, o.Kind == Private:
				below = Hidden
			default:
				below = o.Access
			}
		}
		if s.Access < below && !slices.ContainsFunc(v.Kept, func(k Mount) bool { return k.Path == s.Path }) &&
			s.Kind != Devices && s.Kind != Procs && s.Kind != Private {
			t.Fatalf("%s is a mask: %+v\n%+v", s.Path, folders, v)
		}
	}
}

// Where something is mounted below a grant, programs see nothing, as the agent.
func TestMountsBelowAGrantAreEmpty(t *testing.T) {
	s := ViewSpec{
		Folders: []Folder{{Path: "/srv", Access: ReadWrite}, {Path: "/srv/b/given", Access: ReadOnly}},
		Mounts:  []string{"/srv/a", "/srv/b"},
	}
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]Access{
		"/srv/x": ReadWrite, "/srv/a/x": Hidden, "/srv/b/x": Hidden,
		"/srv/b/given/x": ReadOnly,
	} {
		if got, _ := shown(v, p); got != want {
			t.Errorf("%s: %d, want %d", p, got, want)
		}
	}
}

// What is kept is a name, whether something is there or not.
func TestWhatIsKeptIsAName(t *testing.T) {
	s := ViewSpec{
		Folders: []Folder{
			{Path: "/srv", Access: ReadWrite},
			{Path: "/srv/a/later", Access: Hidden},
			{Path: "/srv/a/later/own", Access: ReadWrite},
			{Path: "/srv/there", Access: ReadOnly},
			{
				Path:   "/srv/there/not",
				Access: Hidden,
			},
		},
		Entries: func(string) []string { return nil },
	}
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	want := []Mount{{Path: "/srv/a/later"}, {Path: "/srv/there", Access: ReadOnly}, {Path: "/srv/there/not"}}
	if !slices.Equal(v.Kept, want) || !slices.ContainsFunc(v.Mounts, func(s Mount) bool {
		return s.Path == "/srv" &&
			s.guarded
	}) {
		t.Errorf("%+v", v)
	}
}

func FuzzPlan(f *testing.F) {
	p := Plan{
		Inside: true, Mounts: []Mount{{Path: "/usr", Kind: System, Access: ReadOnly}, {
			Path: "/srv", Access: ReadWrite,
			guarded: true, mountedOver: true,
		}},
		Kept: []Mount{{Path: "/srv/a"}},
		Work: "/w", File: "/bin/true", Dev: 1 << 40, Ino: 2, Script: true, Dir: ".", Argv: []string{"true", ""},
		Env: []string{"A=b"}, Memory: 3, Pids: 4, Scratch: 5,
	}
	f.Add(p.Encode())
	f.Add([]byte{4, 1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := decodePlan(data)
		if err != nil {
			return
		}
		q, err := decodePlan(p.Encode())
		if err != nil || len(q.Mounts) != len(p.Mounts) || !slices.Equal(q.Argv, p.Argv) ||
			!slices.Equal(q.Mounts, p.Mounts) || !slices.Equal(q.Kept, p.Kept) || q.File != p.File {
			t.Errorf("%+v became %+v, %v", p, q, err)
		}
	})
}
