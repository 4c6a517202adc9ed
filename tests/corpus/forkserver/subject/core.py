import multiprocessing


def work(number, answers):
    answers.put(number + 1)


def remote(number):
    context = multiprocessing.get_context("forkserver")
    answers = context.SimpleQueue()
    process = context.Process(target=work, args=(number, answers))
    process.start()
    process.join(20)
    return process.exitcode if process.exitcode else answers.get()


def local(number):
    return number - 1
