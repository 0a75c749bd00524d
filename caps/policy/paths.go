package policy

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"unicode"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// pathModes are what fs, fs_ro and fs_rw give in a base.
func pathModes(name string) caps.ModeSet {
	if name == "fs_rw" {
		return caps.AllModes(caps.FS)
	}
	return caps.Modes(caps.Read)
}

// readPaths reads fs, fs_ro and fs_rw. What the entries of a layer bound
// depends on which keys stand beside each other: [reader.boundPaths] settles it.
func readPaths(r *reader, k key, v *tomlfile.Value) {
	modes := pathModes(k.name)
	r.strings(k.name, v, func(item *tomlfile.Value) {
		r.hidden(item)
		if strings.HasPrefix(item.Str, "{") {
			r.placeholder(item, modes)
			return
		}
		if p, ok := r.path(item, item.Str); ok {
			r.grant(item, item.Str, caps.Grant{Family: caps.FS, Modes: modes, Scope: p})
		}
	})
}

// tellReadOnly says it to those who may expect otherwise: authors of a policy
// in the first schema who grant no writing anywhere else.
func (w *words) tellReadOnly(t *tomlfile.Table) {
	e, ok := t.Get("fs")
	if _, writes := t.Get("fs_rw"); ok && !writes && !w.v02 && len(e.Value.Items) > 0 {
		w.add(e.Value.Pos, CodeFSReadOnly, "fs_rw grants writing", "fs grants reading alone")
	}
}

// boundPaths makes the bounds of a layer: fs alone bounds every mode, so that
// fs = [] takes writing too; beside fs_rw it bounds reading, to what either
// names; fs_rw alone bounds writing and deleting.
func (r *reader) boundPaths(t *tomlfile.Table) {
	all, changing := caps.AllModes(caps.FS), caps.Modes(caps.Write, caps.Delete)
	read, hasFS := t.Get("fs")
	ro, hasRO := t.Get("fs_ro")
	rw, hasRW := t.Get("fs_rw")
	hasRead := hasFS || hasRO
	if !hasFS {
		read = ro
	}
	switch {
	case hasRead && hasRW:
		r.bound(caps.FS, caps.Modes(caps.Read), &read.Value)
		r.bound(caps.FS, changing, &rw.Value)
	case hasRead:
		r.bound(caps.FS, all, &read.Value)
		r.setPathModes(all)
	case hasRW:
		r.bound(caps.FS, changing, &rw.Value)
		r.setPathModes(changing)
	}
}

func (r *reader) setPathModes(modes caps.ModeSet) {
	for i := range r.allow {
		if r.allow[i].Grant.Family == caps.FS {
			r.allow[i].Grant.Modes = modes
		}
	}
}

// path makes an entry absolute and clean.
func (w *words) path(item *tomlfile.Value, s string) (string, bool) {
	if s == "~" || strings.HasPrefix(s, "~/") {
		if w.opt.Home == "" {
			w.add(item.Pos, CodeBadPath, "write the absolute path", "%q: no home folder is known", s)
			return "", false
		}
		s = w.opt.Home + s[1:]
	} else if strings.HasPrefix(s, "~") {
		w.add(item.Pos, CodeBadPath, `only "~/" stands for a home folder, the operator's own`, "%q is not an absolute path",
			s)
		return "", false
	}
	clean, dotdot, err := caps.CleanPath(s)
	if err != nil {
		w.add(item.Pos, CodeBadPath, "", "%v", err)
		return "", false
	}
	if dotdot {
		w.add(item.Pos, CodePathDotDot, "write "+clean, "%q has .. in it and is read as %s", item.Str, clean)
	}
	w.look(item, clean)
	return clean, true
}

// look says what the machine knows of a path, if it may be asked.
func (w *words) look(item *tomlfile.Value, clean string) {
	if clean == "/" && !w.layer {
		w.add(item.Pos, CodePathRoot, "name the folders that are needed", "%q is the whole file system", item.Str)
		return
	}
	if w.opt.Stat == nil {
		return
	}
	if w.opt.Resolve != nil {
		if to, link := w.opt.Resolve(clean); link != "" {
			w.add(item.Pos, CodePathLink, "write "+to, "%s leads through the link %s to %s", clean, link, to)
		}
	}
	info, err := w.opt.Stat(clean)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		w.add(item.Pos, CodePathMissing,
			`make it: a launch that is left it refuses, unless security.path_profile is "relaxed"`,
			"%s does not exist on this machine", clean)
	case err != nil:
		w.add(item.Pos, CodePathMissing, "", "%s cannot be looked at: %v", clean, err)
	case !info.IsDir():
		w.add(item.Pos, CodePathIsFile, "its folder "+path.Dir(clean)+" is not granted", "%s is a file: it alone is granted",
			clean)
	}
}

// hidden says when a string does not look like what it is.
func (w *words) hidden(item *tomlfile.Value) {
	for _, c := range item.Str {
		if ' ' <= c && c < 0x7f {
			continue
		}
		if unicode.Is(unicode.Cf, c) || c != ' ' && unicode.IsSpace(c) {
			w.add(item.Pos, CodeHiddenChars, "", "%q contains the invisible character %U", item.Str, c)
			return
		}
	}
}

// isParam is paramPattern by hand: compiling it would cost every start.
func isParam(s string) bool {
	if s == "" || len(s) > 64 || s[0] < 'a' {
		return false
	}
	return !strings.ContainsFunc(s, func(c rune) bool {
		return !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_')
	})
}

// placeholder reads "{name}" or "{name}/sub/path".
func (r *reader) placeholder(item *tomlfile.Value, modes caps.ModeSet) {
	name, rest, closed := strings.Cut(item.Str[1:], "}")
	switch {
	case r.layer:
		r.add(item.Pos, CodeBadParam, "write the path itself", "%q: an operator's file has no placeholders", item.Str)
	case !r.needs02(item.Pos, "the placeholder "+item.Str):
	case !closed || !isParam(name) || rest != "" && rest[0] != '/':
		r.add(item.Pos, CodeBadParam, `"{notes}" or "{notes}/sub"`, "%q is no placeholder", item.Str)
	default:
		if rest != "" {
			clean, dotdot, err := caps.CleanPath(rest)
			if err != nil || dotdot || clean == "/" {
				r.add(item.Pos, CodeBadParam, `"{notes}/sub", without .. and patterns`, "%q is no placeholder with a path below it",
					item.Str)
				return
			}
			rest = clean
		}
		r.placeholders = append(r.placeholders, Placeholder{Name: name, Rest: rest, Modes: modes, Pos: place(item.Pos)})
	}
}
