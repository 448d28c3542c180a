package chaos

func isChild() bool { return false }
