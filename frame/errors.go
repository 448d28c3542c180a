package frame

import "errors"

// ErrPaused is the error of a [Reader] whose port is paused: it is attached to no switch, and
// not closed.
var ErrPaused = errors.New("frame: port paused")
