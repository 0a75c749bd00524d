package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Way is what the kernel meets on a path: the symbolic links, each by the
// real name of the folder that holds it, where the path ends, and the first
// component that does not exist, "" where all do.
type Way struct {
	Links   []string
	End     string
	Missing string
}

// maxWay bounds the links of one path; the kernel follows fewer.
const maxWay = 255

// Walk goes along a path as the kernel does: nothing is cleaned as text, for a
// ".." behind a link leaves the folder that the link leads to.
func Walk(path string) (Way, error) {
	if !filepath.IsAbs(path) {
		dir, err := os.Getwd()
		if err != nil {
			return Way{}, err
		}
		path = dir + "/" + path
	}
	w := Way{End: "/"}
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			w.End = filepath.Dir(w.End)
			continue
		}
		here := filepath.Join(w.End, name)
		target, err := os.Readlink(here)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) && w.Missing == "" {
				w.Missing = here
			}
			w.End = here
			continue
		}
		if w.Links = append(w.Links, here); len(w.Links) > maxWay {
			return Way{}, fmt.Errorf("more than %d symbolic links", maxWay)
		}
		if filepath.IsAbs(target) {
			w.End = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return w, nil
}
