"""The engines that decide a problem, one a file; the branch-and-bound engine has a package of its
own."""
