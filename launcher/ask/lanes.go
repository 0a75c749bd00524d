package ask

// A LaneSurvey is what this machine can keep programs from, lane by lane.
type LaneSurvey struct {
	Auto   string `json:"auto"` // the lane that auto takes; "" is none
	Reason string `json:"reason,omitempty"`
	Lanes  []Lane `json:"lanes"`
}

// A Lane is what was found out of one by trying.
type Lane struct {
	Name      string    `json:"name"`
	Available bool      `json:"available"`
	Reason    string    `json:"reason,omitempty"`
	Remedy    string    `json:"remedy,omitempty"`
	Controls  []Control `json:"controls"`
	Attempts  []Attempt `json:"attempts,omitempty"`
}

// A Control is what a lane does of one thing that it could keep from programs.
type Control struct {
	Control string `json:"control"`
	Level   string `json:"level"`
	Reason  string `json:"reason,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
}

// An Attempt is what a program in a lane tried.
type Attempt struct {
	Name    string `json:"name"`
	Control string `json:"control"`
	Refused bool   `json:"refused"`
	Reason  string `json:"reason,omitempty"`
}
