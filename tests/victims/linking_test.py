# SPDX-License-Identifier: Apache-2.0
"""The job's libraries find the functions they would find alone, however they were linked and opened."""

import os
import pathlib
import sys

from victim import VIRTUAL, VictimTest, gpu_kinds, has_virtual_gpus, library, main, victim


class Linking(VictimTest):
    def test_a_library_opened_locally_is_recorded(self):
        for gpu in gpu_kinds():
            for mode in ("local", "global"):
                with self.subTest(mode=mode, gpu=gpu):
                    self.compare(victim("dlopen"), library("user_library"), mode, 1, gpu=gpu)
                    self.assertCalls(self.one_capture(), 10)

    def test_a_deeply_bound_library_keeps_its_functions(self):
        for gpu in gpu_kinds():
            with self.subTest(gpu=gpu):
                self.compare(victim("dlopen"), library("user_library"), "deepbind", 1, gpu=gpu)

    def test_a_library_closed_and_opened_elsewhere_is_called_where_it_is(self):
        for gpu in gpu_kinds():
            with self.subTest(gpu=gpu):
                outcome = self.compare(victim("dlopen"), library("user_library"), "local", 5, "close", gpu=gpu)
                self.assertEqual(outcome.returncode, 0)

    def test_a_library_with_a_runtime_of_its_own_keeps_it(self):
        if not library("user_symbolic").exists():
            self.skipTest("no static CUDA runtime")
        for mode in ("local", "global"):
            with self.subTest(mode=mode):
                self.compare(victim("dlopen"), library("user_symbolic"), mode, 1)

    def test_functions_taken_from_a_handle_are_the_librarys_own(self):
        for gpu in gpu_kinds():
            with self.subTest(gpu=gpu):
                self.compare(victim("dlsym"), gpu=gpu)

    def test_a_statically_linked_runtime_is_left_alone(self):
        # What it calls is seen by CUPTI alone, which needs a driver.
        self.compare(victim("launch_static"))

    def test_launches_of_todays_compiler_are_recorded(self):
        for gpu in gpu_kinds():
            with self.subTest(gpu=gpu):
                self.compare(victim("launch_shared"), gpu=gpu)
                self.assertEqual(len(self.one_capture().of("apiCall", api=1)), 10)

    def test_virtual_kernels_carry_their_name_and_an_end(self):
        if not has_virtual_gpus():
            self.skipTest("virtual GPUs are not built")
        self.compare(victim("launch_shared"), gpu=VIRTUAL)
        capture = self.one_capture()
        names = {identity & 0xffffffff: text for identity, text in capture.strings.items()}
        kernels = capture.of("kernel")
        self.assertEqual(len(kernels), 10)
        for kernel in kernels:
            self.assertIn("addOne", names[kernel["nameIdLow"]])
            self.assertGreater(kernel["durNs"], 0)

    def test_the_users_preload_is_kept_and_called(self):
        for gpu in gpu_kinds():
            with self.subTest(gpu=gpu):
                outcome = self.compare(victim("fork"), 5, 0, 3, gpu=gpu, preload=str(library("user_preload")))
                self.assertIn(b"user's preload: 8 calls\n", outcome.out)
                self.assertCalls(self.one_capture(), 8)

    def test_a_library_preloaded_twice_records_once(self):
        injector = os.environ["VICTIMS_INJECTOR"]
        copy = self.folder / "another_name.so"
        copy.write_bytes(open(injector, "rb").read())
        link = self.folder / "link.so"
        link.symlink_to(injector)
        for second in (injector, str(link), str(copy)):
            with self.subTest(second=second):
                self.compare(victim("threads"), "many", injectors=f"{injector}:{second}")
                self.assertCalls(self.one_capture(), 4000)
                self.compare(victim("fork"), 5, 7, 3, injectors=f"{injector}:{second}")
                self.assertEqual(sorted(capture.calls() for capture in self.captures), [7, 8])

    def without(self, *functions):
        """A copy of the injector to which the process has not got these functions, as before glibc 2.34 without libdl and libpthread."""
        content = pathlib.Path(os.environ["VICTIMS_INJECTOR"]).read_bytes()
        for name in functions:
            self.assertIn(b"\0" + name + b"\0", content)
            content = content.replace(b"\0" + name + b"\0", b"\0?" + name[1:] + b"\0")  # other names may end like it
        copy = self.folder / f"without_{functions[0].decode()}.so"
        copy.write_bytes(content)
        return str(copy)

    def test_a_process_without_libdl_or_libpthread_is_left_alone(self):
        for injector in (self.without(b"dlsym", b"dlopen", b"dladdr", b"dlerror"), self.without(b"pthread_create", b"pthread_key_create", b"pthread_setspecific"),
                         self.without(b"pthread_attr_setstacksize", b"pthread_mutex_trylock")):
            with self.subTest(injector=injector):
                self.compare("/bin/sh", "-c", "/bin/echo a | cat; exec env sh -c 'exit 7'", injectors=injector)
                for how in ("return", "exit", "_exit", "quick_exit"):
                    if "dlsym" not in injector:  # whoever calls CUDA has it
                        self.compare(victim("ends"), how, 100, injectors=injector)
                        self.assertEqual(self.captures, [])
                # Every function of exec, as far as it is found without the dynamic linker's help.
                program = "import os, sys; way = sys.argv[1]; path = '/bin/echo'; getattr(os, way)(path, *(['a', 'b'] if 'l' in way else [['a', 'b']]))"
                for way in ("execv", "execvp", "execl", "execlp"):
                    self.compare(sys.executable, "-c", program, way, injectors=injector)

    def test_exceptions_and_cancellation_pass_a_hook(self):
        for how in ("throw", "cancel"):
            with self.subTest(how=how):
                outcome = self.compare(victim("unwinding"), how, preload=str(library("user_unwinder")))
                self.assertEqual(outcome.returncode, 0, outcome)


if __name__ == "__main__":
    main()
