package sandbox

import "slices"

// Sockets are the folders in which programs may make sockets of Unix, and connect to
// them: those that are theirs alone. One that something of the operator's is shown in
// is none, for rules hold for all below it. Where programs see nothing of the
// operator's at all there is nobody else to connect to, and no broker has to do it.
func (s *ViewSpec) Sockets(v View) (list []string, broker bool) {
	own := []string{s.Work}
	for _, f := range s.Folders {
		if f.Own {
			own = append(own, f.Path)
		}
	}
	for _, m := range v.Mounts {
		if m.Kind == Private {
			own = append(own, m.Path)
		}
	}
	others := slices.DeleteFunc(slices.Clone(v.Mounts), func(m Mount) bool {
		return m.Kind > beside || slices.Contains(own, m.Path) || m.Path == s.Program
	})
	list = slices.DeleteFunc(own, func(dir string) bool {
		return dir == "" || slices.ContainsFunc(others, func(m Mount) bool { return IsIn(m.Path, []string{dir}) })
	})
	return list, len(others) > 0
}
