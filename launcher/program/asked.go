package program

import (
	"fmt"
	"path/filepath"
	"strings"
)

// A Place is where paths of a command line begin.
type Place struct {
	Dir  string // the current folder, without links
	User string // the home of whoever launches
}

// Capabilities are those of a list as a program can have them: one that may write in
// a folder reads it and deletes there, for no lane parts these. A path that begins
// with . is of the current folder, which is nobody's whole home.
func (at Place) Capabilities(list []string) ([]string, error) {
	var all []string
	for _, text := range list {
		for _, mode := range []string{"fs:read:", "fs:write:", "fs:delete:"} {
			path, is := strings.CutPrefix(text, mode)
			if !is {
				continue
			}
			if path == "." || path == ".." || strings.HasPrefix(path, "./") || strings.HasPrefix(path, "../") {
				path = filepath.Join(at.Dir, path)
				if path == "/" || at.User != "" && isWithin(at.User, path) {
					return nil, fmt.Errorf("%s: that is %s, which holds your home: change into the folder that the program "+
						"works on, or write the path of one", text, path)
				}
			}
			text = mode + path
			if mode == "fs:write:" {
				all = append(all, "fs:read:"+path, "fs:delete:"+path)
			}
		}
		all = append(all, text)
	}
	return all, nil
}

// isWithin reports whether a clean path is dir or below it.
func isWithin(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
