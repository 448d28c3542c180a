package policy

// A Filter is what a port has by somebody who is not the configuration. The zero value is nothing.
type Filter struct {
	Guard  *Guard  // behind that of the configuration, and before policies; nil for none
	Policy *Policy // before those of the configuration; nil for none
}
