package mcpserver

import "testing"

// A field that there is not is answered with those that there are.
func TestArgumentsNameTheirFields(t *testing.T) {
	_, err := arguments[struct {
		Limit int `json:"limit,omitempty"`
		After int `json:"after"`
	}]([]byte(`{"lmit": 3}`))
	if err == nil || err.Error() != `arguments.lmit: there is no such field; there are after, limit (line 1, column 2)` {
		t.Error(err)
	}
}
