package run

// A Lane is where code executes, and how well each control is kept there:
// "enforced", "best_effort" or "unsupported".
type Lane struct {
	Name     string            `json:"name"`
	Controls map[string]string `json:"controls"`
}

// wasm is the lane of the agent itself: it has no way out but the calls.
func wasm() *Lane {
	l := &Lane{Name: "wasm", Controls: map[string]string{}}
	for _, c := range WasmControls() {
		l.Controls[c] = "enforced"
	}
	return l
}

// WasmControls are the controls of the lane wasm, each enforced everywhere.
func WasmControls() []string {
	return []string{"filesystem", "network", "processes", "memory", "privileges", "wall_time", "cpu_fuel", "output_caps"}
}

// laneOfBody is where the program ran that a body speaks with; nowhere here, where
// there is none.
func laneOfBody(s *Spec) *Lane {
	if s.Lane != nil {
		return s.Lane
	}
	return &Lane{Name: "none", Controls: map[string]string{}}
}
