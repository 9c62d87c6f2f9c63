package usable

// Nobodys is a key set of one key that nobody can sign for: Envoy takes it, and no token fits it.
// It stands in for a set that isn't there, so that requests with tokens are refused and nothing
// else is.
//
// Nobody had to throw a private key away for it: the point is found by hashing. Its x is the
// SHA-256 of Phrase followed by the first decimal number, from 0, at which that is the x of a point
// of P-256; of the two points the one whose y is even is taken. Who wanted the private key would
// have to find a discrete logarithm on P-256, as for anybody's key. It is the same in every replica
// and after every start.
const Nobodys = `{"keys":[{"kty":"EC","use":"sig","alg":"ES256","crv":"P-256","kid":"nobody",` +
	`"x":"3wgPX7ujE13YxVMhE-d-_4Q-ElfTz89IPq0Tcd5_wLA","y":"-ov_Yx62kcwm9oF-hU3MlW_cQjrq1fP7SXkZhFDRVuw"}]}`

// Phrase is what the key of Nobodys is made of.
const Phrase = "coxswain: a public key on P-256 that nobody has the private key of, try "
