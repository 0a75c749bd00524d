package main

import "strings"

// A todo is something still to be done.
type todo struct {
	note string
	line int
	text string
	due  string // ISO date; "" when none is named
}

type todoState int

const (
	noTodo todoState = iota
	openTodo
	doneTodo
)

// parseTodo reads a line as a task: "- [ ] text", "* [x] text", "3. [ ] text",
// "TODO: text" or "TODO(who): text".
func parseTodo(line string) (todo, todoState) {
	rest := strings.TrimLeft(line, " \t>")
	item, listed := cutBullet(rest)
	if listed {
		if len(item) >= 4 && item[0] == '[' && item[2] == ']' && item[3] == ' ' {
			switch item[1] {
			case ' ':
				return openIf(trimMarker(item[4:]))
			case 'x', 'X':
				return todo{}, doneTodo
			}
		}
		rest = item
	}
	if text := trimMarker(rest); text != strings.TrimSpace(rest) {
		return openIf(text)
	}
	return todo{}, noTodo
}

func openIf(text string) (todo, todoState) {
	if text = clean(text); text == "" {
		return todo{}, noTodo
	}
	return todo{text: text}, openTodo
}

// cutBullet takes "- ", "* ", "+ " or "12. " from the front.
func cutBullet(s string) (string, bool) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	if i > 0 && i < len(s) && (s[i] == '.' || s[i] == ')') || i == 0 && s != "" && strings.IndexByte("-*+", s[0]) >= 0 {
		if rest := s[i+1:]; strings.HasPrefix(rest, " ") {
			return strings.TrimLeft(rest, " "), true
		}
	}
	return s, false
}

// trimMarker takes "TODO:" from the front; of "TODO(who):" it keeps who.
func trimMarker(s string) string {
	s = strings.TrimSpace(s)
	rest, ok := strings.CutPrefix(s, "TODO")
	if !ok {
		return s
	}
	if text, ok := strings.CutPrefix(rest, ":"); ok {
		return strings.TrimSpace(text)
	}
	if inner, ok := strings.CutPrefix(rest, "("); ok {
		if who, text, ok := strings.Cut(inner, "):"); ok {
			return who + ": " + strings.TrimSpace(text)
		}
	}
	return s
}
