package daemon

import "time"

// A State is what a serving process says of itself.
type State struct {
	PID      int            `json:"pid"`
	Since    time.Time      `json:"since"`
	Running  int            `json:"running"`
	Done     int            `json:"done"`
	Declined map[string]int `json:"declined"` // how many, by reason
	IdleMS   int64          `json:"idle_ms"`
}
