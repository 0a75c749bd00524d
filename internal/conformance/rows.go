package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// A row is one statement that the project promises.
type row struct{ id, statement string }

// rowID is the shape of a row's name: its table's letter and its number there.
var rowID = regexp.MustCompile(`^[RAYKCP][1-9][0-9]*$`)

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
