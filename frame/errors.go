package frame

import "errors"

// ErrPaused is returned by a [Reader] whose port is paused: attached to no switch
// at the moment, and not closed.
var ErrPaused = errors.New("frame: port paused")
