// Bench of vt011_universal_shift: universal shift register.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_q;
    int errortime_q;
    int errors_serial_out;
    int errortime_serial_out;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic       reset;
  logic [1:0] op;
  logic       serial_in;
  logic [7:0] data;
  wire  [7:0] q_ref;
  wire  [7:0] q_dut;
  wire        serial_out_ref;
  wire        serial_out_dut;

  RefModule good1 (
    .clk(clk),
    .reset(reset),
    .op(op),
    .serial_in(serial_in),
    .data(data),
    .q(q_ref),
    .serial_out(serial_out_ref)
  );

  TopModule top_module1 (
    .clk(clk),
    .reset(reset),
    .op(op),
    .serial_in(serial_in),
    .data(data),
    .q(q_dut),
    .serial_out(serial_out_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire  [7:0] open_q = q_ref ^ q_ref;
  wire        match_q = (q_dut ^ open_q) === (q_ref ^ open_q);
  wire        open_serial_out = serial_out_ref ^ serial_out_ref;
  wire        match_serial_out = (serial_out_dut ^ open_serial_out) === (serial_out_ref ^ open_serial_out);
  wire        tb_match = match_q && match_serial_out;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_q) begin
      if (stats1.errors_q == 0) stats1.errortime_q = $time;
      stats1.errors_q = stats1.errors_q + 1;
    end
    if (!match_serial_out) begin
      if (stats1.errors_serial_out == 0) stats1.errortime_serial_out = $time;
      stats1.errors_serial_out = stats1.errors_serial_out + 1;
    end
  end

  integer i;
  initial begin
    reset <= 1'b1;
    op <= 2'd1;
    serial_in <= 1'b1;
    data <= 8'hff;
    repeat (2) @(posedge clk);
    reset <= 1'b0;
    op <= 2'd3;
    data <= 8'hb5;
    @(posedge clk);
    for (i = 0; i < 40; i = i + 1) @(posedge clk) begin
      op <= (i < 12) ? 2'd1 : (i < 24) ? 2'd2 : 2'd0;
      serial_in <= $random;
      data <= $random;
    end
    repeat (300) @(posedge clk) begin
      op <= $urandom;
      serial_in <= $random;
      data <= $random;
      reset <= ($urandom & 31) == 0;
    end
    @(negedge clk);
    #1 $finish;
  end

  initial begin
    #200000;
    $display("TIMEOUT");
    $finish;
  end

  final begin
    if (stats1.errors_q != 0)
      $display("Hint: Output 'q' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_q, stats1.errortime_q);
    else
      $display("Hint: Output 'q' has no mismatches.");
    if (stats1.errors_serial_out != 0)
      $display("Hint: Output 'serial_out' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_serial_out, stats1.errortime_serial_out);
    else
      $display("Hint: Output 'serial_out' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
