package lane

import (
	"math/rand/v2"
	"path"
	"slices"
	"testing"
)

// shown is what spots let a program do at p, as mounts do: the last one above it
// decides.
func shown(spots []spot, p string) (Access, spotKind) {
	access, kind := Hidden, nothing
	for _, s := range spots { // parents come first
		if isIn(p, []string{s.path}) || s.path == "/" {
			access, kind = s.access, s.kind
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
		s := scene{folders: folders, work: "/work"}
		spots := s.spots()
		for range 20 {
			p := somewhere()
			access, kind := shown(spots, p)
			agent := held(folders, p)
			switch {
			case kind == private || kind == devices || kind == procs || p == "/tmp":
				continue
			case access > max(agent, systemAccess(p)):
				t.Fatalf("%s: programs may %d, the agent %d: %+v\n%+v", p, access, agent, folders, spots)
			case access < agent && !slices.ContainsFunc(spots, func(s spot) bool { return s.kind == private && isIn(p, []string{s.path}) }):
				t.Fatalf("%s: programs may %d, the agent %d: %+v\n%+v", p, access, agent, folders, spots)
			}
		}
		heldFast(t, folders, spots)
	}
}

func systemAccess(p string) Access {
	if isIn(p, systemPaths()) {
		return ReadOnly
	}
	return Hidden
}

// heldFast: whatever lies lower in a folder that can be written cannot be moved,
// and neither can a folder on the way to it.
func heldFast(t *testing.T, folders []Folder, spots []spot) {
	t.Helper()
	at := map[string]bool{}
	for _, s := range spots {
		at[s.path] = true
	}
	for _, s := range spots {
		if s.kind == private || s.access == ReadWrite && !s.must {
			continue
		}
		for dir := path.Dir(s.path); dir != "/"; dir = path.Dir(dir) {
			if access, kind := shown(spots, dir); access == ReadWrite && kind != private && held(folders, dir) == ReadWrite && !at[dir] {
				above := slices.ContainsFunc(spots, func(o spot) bool {
					return o.access < ReadWrite && isIn(s.path, []string{o.path}) && isIn(o.path, []string{dir}) && o.path != s.path
				})
				if !above {
					t.Fatalf("%s can be moved, and %s with it: %+v\n%+v", dir, s.path, folders, spots)
				}
			}
		}
	}
}

// Where something is mounted below a grant, programs see nothing, as the agent.
func TestMountsBelowAGrantAreEmpty(t *testing.T) {
	s := scene{folders: []Folder{{"/srv", ReadWrite}, {"/srv/b/given", ReadOnly}}, mounts: []string{"/srv/a", "/srv/b"}}
	for p, want := range map[string]Access{"/srv/x": ReadWrite, "/srv/a/x": Hidden, "/srv/b/x": Hidden, "/srv/b/given/x": ReadOnly} {
		if got, _ := shown(s.spots(), p); got != want {
			t.Errorf("%s: %d, want %d", p, got, want)
		}
	}
}

func TestWhatIsNotThereYetCannotBeKept(t *testing.T) {
	s := scene{folders: []Folder{{"/srv", ReadWrite}, {"/srv/a/later", Hidden}, {"/srv/there", ReadOnly}}}
	got := s.unkept(func(p string) bool { return p == "/srv/there" || p == "/srv/a" })
	if !slices.Equal(got, []string{"/srv/a/later"}) {
		t.Errorf("%v", got)
	}
}

func FuzzPlan(f *testing.F) {
	p := plan{
		inside: true, spots: []spot{{path: "/usr", kind: system, access: ReadOnly}, {path: "/srv", access: ReadWrite, must: true, mount: true}},
		work: "/w", file: "/bin/true", dev: 1 << 40, ino: 2, script: true, dir: ".", argv: []string{"true", ""}, env: []string{"A=b"}, memory: 3, pids: 4, scratch: 5,
	}
	f.Add(p.encode())
	f.Add([]byte{2, 1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := decodePlan(data)
		if err != nil {
			return
		}
		q, err := decodePlan(p.encode())
		if err != nil || len(q.spots) != len(p.spots) || !slices.Equal(q.argv, p.argv) || !slices.Equal(q.spots, p.spots) || q.file != p.file {
			t.Errorf("%+v became %+v, %v", p, q, err)
		}
	})
}
