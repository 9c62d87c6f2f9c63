// Command mutants changes the product in one place, runs the tests that should notice, and takes the change back; again and again, for a random sample of
// all such changes that a seed fixes. What survives shows where tests are blind. Nothing in the tree is touched: tests are built with an overlay.
//
//	go run ./test/mutants -sample 300 -seed 1
//
// A mutant is killed if the tests of its own package fail, do not end in time, or, where these pass, those of packages that import it. With -through the
// program is built with the change, too, and more packages are tested with it. Mutants that don't build, or that change nothing that is compiled
// here, are replaced by the next ones. Results are kept in a file, from which a run that was interrupted goes on; those of files that have changed since
// are made again.
package main
