package mcpserver

import "testing"

// A field that there is not is answered with those that there are.
func TestArgumentsNameTheirFields(t *testing.T) {
	_, err := arguments[struct {
		Limit int `json:"limit,omitempty"`
		After int `json:"after"`
	}]([]byte(`{"lmit": 3}`))
	if err == nil || err.Error() != `arguments: there is no field "lmit"; the fields are limit, after` {
		t.Error(err)
	}
}
