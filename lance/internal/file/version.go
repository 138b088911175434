package file

import "fmt"

// Version is a data file version as manifests name it, such as 2.1.
type Version struct{ Major, Minor uint16 }

// The versions that can be read and written.
var (
	V20 = Version{2, 0}
	V21 = Version{2, 1}
	V22 = Version{2, 2}
)

// String gives the form of a manifest's data_format, "2.1".
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// ParseVersion reads the form of a manifest's data_format. Errors wrap ErrUnsupported.
func ParseVersion(s string) (Version, error) {
	for _, v := range []Version{V20, V21, V22} {
		if v.String() == s {
			return v, nil
		}
	}
	return Version{}, fmt.Errorf("%w: file version %q", ErrUnsupported, s)
}

// structural reports whether columns are leaves with repetition and definition levels (2.1 and later), rather
// than one column for every field.
func (v Version) structural() bool { return v != V20 }
