package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

// A row is one statement that the project promises.
type row struct{ id, statement string }

// rowID is the shape of a row's name: its table's letter and its number there.
var rowID = regexp.MustCompile(`^[RAYKCPDN][1-9][0-9]*$`)

// readRows reads a file of "id TAB statement" lines.
func readRows(path string) ([]row, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseRows(string(data), path)
}

// parseRows reads lines of "id TAB statement"; name is the file in its errors.
func parseRows(text, name string) ([]row, error) {
	var rows []row
	seen := make(map[string]bool)
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		id, statement, ok := strings.Cut(line, "\t")
		switch {
		case !ok || !rowID.MatchString(id):
			return nil, fmt.Errorf("%s:%d: want an id, a tab and a statement", name, i+1)
		case statement == "" || strings.ContainsAny(statement, "\t|"):
			return nil, fmt.Errorf("%s:%d: %s: a statement is not empty and has neither tab nor bar", name, i+1, id)
		case seen[id]:
			return nil, fmt.Errorf("%s:%d: row %s is there twice", name, i+1, id)
		}
		seen[id] = true
		rows = append(rows, row{id, statement})
	}
	return rows, nil
}

// readUnsupported reads lines of "id TAB the platform that would hold it": rows
// that there are and that no test holds. Without the file there are none.
func readUnsupported(path string, rows []row, held map[string][]holder) (map[string]string, error) {
	list, err := readRows(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return unsupportedOf(list, path, rows, held)
}

func unsupportedOf(list []row, name string, rows []row, held map[string][]holder) (map[string]string, error) {
	known := make(map[string]bool, len(rows))
	for _, r := range rows {
		known[r.id] = true
	}
	where := make(map[string]string, len(list))
	for _, r := range list {
		switch {
		case !known[r.id]:
			return nil, fmt.Errorf("%s: there is no row %q", name, r.id)
		case len(held[r.id]) > 0:
			return nil, fmt.Errorf("%s: %s is held by %s", name, r.id, held[r.id][0].name)
		}
		where[r.id] = r.statement
	}
	return where, nil
}
